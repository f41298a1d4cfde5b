package argument

import (
	"bytes"
	"log/slog"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// registry has one limit.
func registry(t *testing.T) *namedlimit.Registry {
	t.Helper()
	named := namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)})
	if err := named.Set(namedlimit.Definition{Name: "login", Windows: []namedlimit.Window{{Capacity: 5, Count: 5, PeriodSec: 60}}}); err != nil {
		t.Fatal(err)
	}
	return named
}

// TestCheck: the names of several requests stay as they are while others are joined behind them.
func TestCheck(t *testing.T) {
	request := Requests(registry(t))["cl.check"]
	var joined []byte
	var batch [100]store.Request
	for i := range batch {
		args := words("cl.check login")
		args = append(args, bytes.Repeat([]byte{byte(i)}, i), []byte("-3"))
		if err := request(&batch[i], 7, args, funnel.Burst, &joined); err != nil {
			t.Fatal(err)
		}
	}
	for i := range batch {
		q := &batch[i]
		if want := "login:" + string(bytes.Repeat([]byte{byte(i)}, i)); string(q.Key.Name) != want || cap(q.Key.Name) != len(want) || q.Key.DB != 7 {
			t.Errorf("request %d is for %+v", i, q.Key)
		}
		if n, _ := q.Rule.Shared.(*limiter.NamedLimit); q.Rule.Kind != limiter.Named || q.Rule.Unit != funnel.WholeSeconds || len(n.Windows) != 1 || q.Quantity != -3 {
			t.Errorf("request %d: %+v", i, q)
		}
	}
}

// TestCheckErrors leave nothing joined.
func TestCheckErrors(t *testing.T) {
	request := Requests(registry(t))["cl.check"]
	const usage = "ERR Usage: cl.check <name> <key> [<quantity>]"
	for args, want := range map[string]string{
		"":            usage,
		"login":       usage,
		"nosuch":      usage,
		"login k 1 1": usage,
		"nosuch k x":  "Cell error: Store error: Couldn't parse as integer: x",
		"nosuch k":    "ERR no such limit 'nosuch'; define it by CL.LIMIT SET or in --limits-file",
	} {
		var q store.Request
		var joined []byte
		if err := request(&q, 0, words("cl.check "+args), funnel.Burst, &joined); err == nil || reply.Text(err) != want || len(joined) > 0 || q.Key.Name != nil {
			t.Errorf("%q: %v, want %s; %+v", args, err, want, q)
		}
	}
}
