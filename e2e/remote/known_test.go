package remote

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/redistest"
	"cellserver/internal/wire/catalog"
)

// changesOfTATs are calls of every command that writes to a key, with KEY for its name, ID for what
// CL.RESERVE has returned before, DUMP for a state whose debt is smaller, and AT for half a minute from now.
var changesOfTATs = map[string][]string{
	"cl.throttle":    {"CL.THROTTLE KEY 0 1 1000 -1", "CL.THROTTLE KEY 9 1 1000 3", "CL.THROTTLE KEY 0 1 1000 0"},
	"cl.pthrottle":   {"CL.PTHROTTLE KEY 0 1 1000000 -1", "CL.PTHROTTLE KEY 9 1 1000000 3"},
	"cl.tokenbucket": {"CL.TOKENBUCKET KEY 1 1 1000 -1", "CL.TOKENBUCKET KEY 9 1 1000 3"},
	"rl.throttle":    {"RL.THROTTLE KEY 0 1 1000 -1", "RL.THROTTLE KEY 9 1 1000 3"},
	"cl.refund":      {"CL.REFUND KEY 0 1 1000 1"},
	"cl.bthrottle":   {"CL.BTHROTTLE KEY 0 1 1000 -1 0.01", "CL.BTHROTTLE KEY 9 1 1000 3 0.01", "CL.BTHROTTLE KEY 0 1 1000 1 0.01"},
	"cl.debit":       {"CL.DEBIT KEY 9 1 1000 3"},
	"cl.mthrottle":   {"CL.MTHROTTLE 1 KEY 9 1 1000 3"},
	"cl.reserve":     {"CL.RESERVE KEY 9 1 1000 2 100"},
	"cl.commit":      {"CL.RESERVE KEY 9 1 1000 2 100; CL.COMMIT KEY ID 0", "CL.RESERVE KEY 9 1 1000 2 100; CL.COMMIT KEY ID 4"},
	"cl.reset":       {"CL.RESET KEY"},
	"del":            {"DEL KEY"},
	"unlink":         {"UNLINK KEY"},
	"set":            {"SET KEY AT", "SET KEY AT IFNE 5", "SET KEY AT IFDNE 0000000000000000 GET"},
	"restore":        {"RESTORE KEY 0 DUMP REPLACE"},
	"expire":         {"EXPIRE KEY 30"},
	"pexpire":        {"PEXPIRE KEY 30000"},
	"expireat":       {"EXPIREAT KEY 1"},
	"pexpireat":      {"PEXPIREAT KEY 1"},
	"persist":        {"PERSIST KEY"},
	// They are about keys of other kinds.
	"cl.bucket|add": nil, "cl.bucket|reset": nil, "cl.bucket|take": nil, "cl.fixedwindow": nil, "cl.slidingwindow": nil,
	"cl.quota": nil, "cl.mcheck": nil, "cl.mreserve": nil, "cl.mcommit": nil, "cl.mextend": nil,
	"cl.concurrency|acquire": nil, "cl.concurrency|release": nil, "cl.concurrency|renew": nil,
}

// TestRemoteKnowsItsOwnChanges: whatever a command does to the key of somebody who was just limited, the next
// call is decided as the store's state says.
func TestRemoteKnowsItsOwnChanges(t *testing.T) {
	t.Parallel()
	store := redistest.Server(t)
	_, client := startRemote(t, "redis://"+store.Addr, "--store-timeout", never)
	_, asking := startRemote(t, "redis://"+store.Addr, "--store-timeout", never)
	for _, c := range catalog.New().OverRemote().Commands() {
		if c.Subs != nil || c.Refusal != "" || c.Flags&catalog.FlagWrite == 0 ||
			c.Keys.First == 0 && c.Keys.Counted == 0 && c.Keys.With == 0 {
			continue
		}
		calls, known := changesOfTATs[c.FullName()]
		if !known {
			t.Errorf("%s writes to a key, and is not tried", c.FullName())
		}
		for i, call := range calls {
			for _, inExec := range []bool{false, true} {
				name := fmt.Sprint(c.FullName(), i, inExec)
				k := &changedKey{t: t, name: name, inExec: inExec, client: client, asking: asking}
				k.change(call)
			}
		}
	}
}

// changedKey is a key that is changed after it was limited.
type changedKey struct {
	t              *testing.T
	name           string
	inExec         bool
	client, asking *redis.Client // asking only looks, which is never decided without the store
}

func (k *changedKey) change(calls string) {
	k.t.Helper()
	k.throttle(k.client, "1")
	if !k.throttle(k.client, "1").limited {
		k.t.Fatalf("%s is not limited", k.name)
	}
	id := ""
	for call := range strings.SplitSeq(calls, "; ") {
		id = k.do(call, id)
	}
	room := k.throttle(k.asking, "0").remaining > 0
	got := k.throttle(k.client, "1")
	if got.limited == room {
		k.t.Errorf("after %s, in EXEC %t: %+v, and there is room: %t", calls, k.inExec, got, room)
	}
	if want := k.throttle(k.asking, "0"); got.limited && got.retryAfter < want.resetAfter {
		k.t.Errorf("after %s, in EXEC %t: to retry after %d s, and %d s are true", calls, k.inExec,
			got.retryAfter, want.resetAfter)
	}
}

// do makes a call, and returns the last string in its reply.
func (k *changedKey) do(call, id string) (text string) {
	k.t.Helper()
	var args []any
	for word := range strings.FieldsSeq(call) {
		switch word {
		case "KEY":
			word = k.name
		case "ID":
			word = id
		case "AT":
			word = strconv.FormatInt(time.Now().Add(30*time.Second).UnixNano(), 10)
		case "DUMP":
			k.asking.Do(k.t.Context(), "CL.THROTTLE", "little debt", 0, 1, 30)
			word, _ = k.asking.Dump(k.t.Context(), "little debt").Result()
		}
		args = append(args, word)
	}
	var reply any
	var err error
	if k.inExec {
		pipe := k.client.TxPipeline()
		cmd := pipe.Do(k.t.Context(), args...)
		if _, err = pipe.Exec(k.t.Context()); err == nil {
			reply, err = cmd.Result()
		}
	} else {
		reply, err = k.client.Do(k.t.Context(), args...).Result()
	}
	if err != nil {
		k.t.Errorf("%s, in EXEC %t: %v", call, k.inExec, err)
	}
	all, _ := reply.([]any)
	for _, part := range all {
		if s, is := part.(string); is {
			text = s
		}
	}
	return text
}

type fiveNumbers struct {
	limited                           bool
	remaining, retryAfter, resetAfter int64
}

func (k *changedKey) throttle(client *redis.Client, quantity string) fiveNumbers {
	k.t.Helper()
	numbers, err := client.Do(k.t.Context(), "CL.THROTTLE", k.name, 0, 1, 1000, quantity).Int64Slice()
	if err != nil || len(numbers) != 5 {
		k.t.Fatalf("%s: %v, %v", k.name, numbers, err)
	}
	return fiveNumbers{numbers[0] == 1, numbers[2], numbers[3], numbers[4]}
}
