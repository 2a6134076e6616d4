for pair in $(for b in $(field Isr | tr ',' ' '); do content "$b"; done | tr ' ' '\n' | sort -u | cut -d: -f1 | uniq -d); do
  echo "DIVERGED at offset $pair"; failed=1
done
for b in $brokers; do echo "broker $b: $(content "$b")"; done
