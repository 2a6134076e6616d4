#!/usr/bin/env bash
# Written by highwater ticket @name@
# @title@
# Repeats it on a fresh cluster on loopback with Kafka's own tools: KAFKA_HOME is an unpacked Kafka @release@;
# java of a JDK has to be on PATH.
# Exit code 1: it happened. 0: Kafka kept what it had acknowledged. 2: a step did not come about.
set -u
: "${KAFKA_HOME:?the folder of an unpacked Kafka, with bin/kafka-topics.sh}"
bin=$KAFKA_HOME/bin
work=${WORK:-$(mktemp -d /tmp/@name@-XXXXXX)}
mkdir -p "$work"
base=${PORT:-29090} # The controller listens there, broker N on the N-th port above.
topic=partition
brokers="@brokers@"
servers=@servers@
export KAFKA_HEAP_OPTS="${KAFKA_HEAP_OPTS:--Xmx256m}"
cluster_id=$("$bin/kafka-storage.sh" random-uuid 2>/dev/null | tail -1)
acknowledged=""

fail() { echo "NOT REPEATED: $*" >&2; exit 2; }
note() { echo "$(date +%H:%M:%S) $*"; }
node() { eval "echo \${pid_$1:-}"; }
trap 'for n in 100 $brokers; do p=$(node "$n"); [ -n "$p" ] && kill -9 "$p" 2>/dev/null; done' EXIT

configure() { # node
  mkdir -p "$work/$1"
  if [ "$1" = 100 ]; then role=controller; port=$base; listener=CONTROLLER; else
    role=broker; port=$((base + $1)); listener=PLAINTEXT; fi
  cat > "$work/$1.properties" <<END
process.roles=$role
node.id=$1
controller.quorum.voters=100@127.0.0.1:$base
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
listeners=$listener://127.0.0.1:$port
log.dirs=$work/$1/data
offsets.topic.replication.factor=1
broker.session.timeout.ms=@session_ms@
initial.broker.registration.timeout.ms=300000
log.index.size.max.bytes=65536
replica.lag.time.max.ms=@lag_ms@
replica.fetch.max.bytes=1
replication.quota.window.num=300
@properties@
END
  "$bin/kafka-storage.sh" format -t "$cluster_id" -c "$work/$1.properties" @feature@>> "$work/format.log" 2>&1 ||
    fail "formatting, see $work/format.log"
}

start() { # node
  LOG_DIR=$work/$1 "$bin/kafka-server-start.sh" "$work/$1.properties" >> "$work/$1.out" 2>&1 &
  eval "pid_$1=$!"
}

await() { # seconds, what, command...; PATIENCE=3 waits three times as long, for a busy machine
  local end=$(($(date +%s) + $1 * ${PATIENCE:-1})) what=$2
  shift 2
  until "$@"; do
    [ "$(date +%s)" -lt "$end" ] || fail "waited in vain for: $what ($(describe))"
    sleep 0.5
  done
}

describe() { "$bin/kafka-topics.sh" --bootstrap-server "$servers" --describe --topic $topic 2>/dev/null | grep Partition:; }
field() { describe | sed -n "s/.*[[:space:]]$1: *\([^[:space:]]*\).*/\1/p"; }
sorted() { tr ',' '\n' | sort -n | tr '\n' ' ' | sed 's/ *$//'; }
isr_is() { [ "$(field Isr | sorted)" = "$1" ]; }
leader_is() { [ "$(field Leader)" = "$1" ]; }
leader_is_not() { local now; now=$(field Leader); [ -n "$now" ] && [ "$now" != "$1" ]; }
has_leader() { local now; now=$(field Leader); [ -n "$now" ] && [ "$now" != none ] && [ "$now" != -1 ]; }
starts() { grep -c "Kafka Server started" "$work/$1.out" 2>/dev/null; }
is_running() { [ "$(starts "$1")" -gt "$2" ]; }
run() { # broker: start it, and wait until the controller has unfenced it
  local before; before=$(starts "$1"); start "$1"; await 120 "broker $1 runs" is_running "$1" "${before:-0}"
}
ended() { ! kill -0 "$(node "$1")" 2>/dev/null; }
session_over() { # broker: another one says so; where none runs to be asked, the session has had its time
  local b
  for b in $brokers; do ended "$b" || { await 180 "broker $1 leads no longer" leader_is_not "$1"; return; }; done
  sleep $((@session_ms@ / 1000 + 3))
}
stop() { kill -TERM "$(node "$1")"; await 120 "broker $1 ends" ended "$1"; wait "$(node "$1")" 2>/dev/null; }
crash() { for b in "$@"; do kill -9 "$(node "$b")"; done; for b in "$@"; do wait "$(node "$b")" 2>/dev/null; done; }
log_of() { echo "$work/$1/data/$topic-0"; }
has_no_log() { [ ! -d "$(log_of "$1")" ]; }
size_of() { stat -c %s "$(log_of "$1")/00000000000000000000.log" 2>/dev/null || echo 0; }
lose_power() { # broker:batch...: what a broker appended from this batch on was in the page cache only
  crash "${@%%:*}"
  for pair in "$@"; do
    [ -z "${pair#*:}" ] || truncate -s "$(cat "$work/size-${pair#*:}-${pair%%:*}")" \
      "$(log_of "${pair%%:*}")/00000000000000000000.log"
  done
}
replace_disk() { kill -9 "$(node "$1")"; wait "$(node "$1")" 2>/dev/null; rm -rf "$work/$1/data"; configure "$1"; }

produce() { # batch, acks
  for b in $brokers; do size_of "$b" > "$work/size-$1-$b"; done
  echo "$1" | "$bin/kafka-console-producer.sh" --bootstrap-server "$servers" --topic $topic --sync \
    --request-required-acks "$2" > "$work/producer.out" 2>&1
  grep -q -E "Error when sending|Exception" "$work/producer.out" && fail "$1 was not acknowledged, see $work/producer.out"
  acknowledged="$acknowledged $1"
}

# kafka-reassign-partitions.sh refuses replicas on brokers that are down ("Unknown broker id"); Kafka's Admin client and
# controller accept them, and so do programs that use that client.
cat > "$work/Reassign.java" <<'END'
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.TopicPartition;

public class Reassign {
    public static void main(String[] words) throws Exception {
        Optional<NewPartitionReassignment> wanted = Optional.empty();
        if (words.length > 2)
            wanted = Optional.of(new NewPartitionReassignment(
                Arrays.stream(words[2].split(",")).map(Integer::valueOf).toList()));
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", words[0]))) {
            admin.alterPartitionReassignments(Map.of(new TopicPartition(words[1], 0), wanted)).all().get();
        }
    }
}
END

reassign() { # replicas; without any: cancel
  java -cp "$KAFKA_HOME/libs/*" "$work/Reassign.java" "$servers" $topic "$@" >> "$work/reassign.out" 2>&1 ||
    fail "reassignment, see $work/reassign.out"
}

again() { # command; a tool that asks a paused broker first ends with a timeout
  for i in 1 2 3; do "$@" >> "$work/configs.out" 2>&1 && return; done
  return 1
}

set_topic() { again "$bin/kafka-configs.sh" --bootstrap-server "$servers" --alter --entity-type topics --entity-name $topic \
  --add-config "$1" || fail "$1, see $work/configs.out"; }

set_feature() { # upgrade or downgrade, feature=level
  "$bin/kafka-features.sh" --bootstrap-server "$servers" "$1" --feature "$2" >> "$work/configs.out" 2>&1 ||
    fail "$1 to $2, see $work/configs.out"
}

throttle() { # leader: it sends followers outside the ISR one batch, then next to nothing
  set_topic 'leader.replication.throttled.replicas=*'
  again "$bin/kafka-configs.sh" --bootstrap-server "$servers" --alter --entity-type brokers --entity-name "$1" \
    --add-config leader.replication.throttled.rate=1 || fail "throttle, see $work/configs.out"
}

unthrottle() { "$bin/kafka-configs.sh" --bootstrap-server "$servers" --alter --entity-type topics --entity-name $topic \
  --delete-config leader.replication.throttled.replicas >> "$work/configs.out" 2>&1; }

delete_records() { # offset
  echo "{\"version\":1,\"partitions\":[{\"topic\":\"$topic\",\"partition\":0,\"offset\":$1}]}" > "$work/delete.json"
  "$bin/kafka-delete-records.sh" --bootstrap-server "$servers" --offset-json-file "$work/delete.json" > "$work/delete.out" 2>&1
}

content() { # broker: offset and value of each record in its log
  "$bin/kafka-dump-log.sh" --print-data-log --files "$(log_of "$1")/00000000000000000000.log" 2>/dev/null |
    sed -n 's/.*| offset: \([0-9]*\) .*payload: \(m[0-9]*\).*/\1:\2/p' | tr '\n' ' '
}

note "cluster of $(echo $brokers | wc -w) brokers in $work"
configure 100
start 100
for b in $brokers; do configure "$b"; start "$b"; done
for b in $brokers; do await 180 "broker $b runs" is_running "$b" 0; done
"$bin/kafka-topics.sh" --bootstrap-server "$servers" --create --topic $topic --replica-assignment @assignment@ @topic_configs@\
  > "$work/create.out" 2>&1 || fail "creating the topic, see $work/create.out"
await 60 "the ISR is @isr@" isr_is "@isr@"
printf 'filler %03000d
' 0 | "$bin/kafka-console-producer.sh" --bootstrap-server "$servers" --topic $topic > "$work/producer.out" 2>&1

