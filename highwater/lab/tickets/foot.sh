
# The outcome.
note "all brokers are to run; last state:"
sleep 5
describe
failed=0
for i in $(seq 30); do has_leader && break; sleep 2; done
if ! has_leader; then
  echo "NO LEADER, although all brokers run"; failed=1
else
  "$bin/kafka-console-consumer.sh" --bootstrap-server "$servers" --topic $topic --partition 0 --offset earliest --timeout-ms 15000 \
    > "$work/read.out" 2>/dev/null
  for m in @judged@; do
    case " $acknowledged " in *" $m "*) grep -q -x "$m" "$work/read.out" || { echo "LOST: $m was acknowledged"; failed=1; };; esac
  done
fi
for i in $(seq 10); do
  still=$("$bin/kafka-reassign-partitions.sh" --bootstrap-server "$servers" --list 2>/dev/null | grep "^$topic-0") || break
  sleep 2
done
[ -n "${still:-}" ] && { echo "NOT COMPLETED: $still"; failed=1; }
