package argument

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

func TestInt(t *testing.T) {
	for _, tt := range []struct {
		arg  string
		want int64
		err  error
	}{
		{"0", 0, nil}, {"-7", -7, nil}, {"9223372036854775807", 1<<63 - 1, nil},
		{"9223372036854775808", 0, reply.ErrNotInteger}, {"", 0, reply.ErrNotInteger}, {"1.0", 0, reply.ErrNotInteger},
	} {
		if got, err := Int([]byte(tt.arg)); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q: %d, %v", tt.arg, got, err)
		}
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		name string
		read func([]byte) (bool, error)
		arg  string
		want bool
		err  error
	}{
		{"YesNo", YesNo, "Yes", true, nil}, {"YesNo", YesNo, "no", false, nil}, {"YesNo", YesNo, "on", false, reply.ErrSyntax},
		{"OnOff", OnOff, "ON", true, nil}, {"OnOff", OnOff, "off", false, nil}, {"OnOff", OnOff, "", false, reply.ErrSyntax},
	} {
		if got, err := tt.read([]byte(tt.arg)); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s(%q): %t, %v", tt.name, tt.arg, got, err)
		}
	}
}

func TestDatabase(t *testing.T) {
	for _, tt := range []struct {
		arg       string
		databases int
		want      uint16
		err       error
	}{
		{"0", 16, 0, nil}, {"15", 16, 15, nil}, {"65535", 1 << 16, 65535, nil}, {"16", 16, 0, reply.ErrDBRange},
		{"-1", 16, 0, reply.ErrDBRange}, {"2147483647", 16, 0, reply.ErrDBRange}, {"2147483648", 16, 0, reply.ErrInt32},
		{"-2147483649", 16, 0, reply.ErrInt32}, {"x", 16, 0, reply.ErrNotInteger},
	} {
		if got, err := Database([]byte(tt.arg), tt.databases); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q of %d: %d, %v", tt.arg, tt.databases, got, err)
		}
	}
}

// TestCloneAll: the buffer that the arguments are slices of may change.
func TestCloneAll(t *testing.T) {
	buffer := []byte("ab")
	all := CloneAll([][]byte{buffer[:1], buffer[1:], nil})
	copy(buffer, "xy")
	if got := string(bytes.Join(all, []byte(","))); got != "a,b," {
		t.Errorf("got %q", got)
	}
}

// TestCloneAllAllocates twice, however many arguments there are, which are all for the garbage collector to
// look at.
func TestCloneAllAllocates(t *testing.T) {
	args := make([][]byte, 100_000)
	for i := range args {
		args[i] = []byte("x")
	}
	if got := testing.AllocsPerRun(3, func() { CloneAll(args) }); got > 2 {
		t.Errorf("%.0f allocations", got)
	}
	all := CloneAll(args[:2])
	if _ = append(all[0], 'y'); all[1][0] != 'x' {
		t.Error("an argument grows into the next")
	}
}

func TestNames(t *testing.T) {
	if err := CheckNames(make([][]byte, maxNames)); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	if err := CheckNames(make([][]byte, maxNames+1)); err == nil || err.Error() != "ERR more than 128 names or patterns; ask for all of them instead" {
		t.Errorf("one more: %v", err)
	}
	longest := strings.Repeat("*", maxPatternBytes-4) + "Ping"
	for pattern, want := range map[string]bool{"ping": true, "P*": true, "pin": false, longest: true, "*" + longest: false} {
		if got := NameMatcher([]byte(pattern))("ping"); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
}

// registry has one limit.
func registry(t *testing.T) *namedlimit.Registry {
	t.Helper()
	named := namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)})
	if err := named.Set(namedlimit.Definition{
		Name: "login", Near: namedlimit.DefaultNear,
		Policy: namedlimit.Policy{Rules: []namedlimit.Rule{{Capacity: 5, Count: 5, PeriodSec: 60}}},
	}); err != nil {
		t.Fatal(err)
	}
	return named
}

// TestCheck: the names of several requests stay as they are while others are joined behind them.
func TestCheck(t *testing.T) {
	request := Requests(registry(t))["cl.check"]
	var names Names
	var batch [100]store.Request
	for i := range batch {
		args := words("cl.check login")
		args = append(args, bytes.Repeat([]byte{byte(i)}, i), []byte("-3"))
		if err := request(&batch[i], 7, args, funnel.Burst, &names); err != nil {
			t.Fatal(err)
		}
	}
	for i := range batch {
		q := &batch[i]
		if want := "login:" + string(bytes.Repeat([]byte{byte(i)}, i)); string(q.Key.Name) != want || cap(q.Key.Name) != len(want) || q.Key.DB != 7 {
			t.Errorf("request %d is for %+v", i, q.Key)
		}
		if n, _ := q.Rule.Shared.(*limiter.NamedLimit); q.Rule.Kind != limiter.Named || q.Rule.Unit != funnel.WholeSeconds || len(n.Rules) != 1 || q.Quantity != -3 {
			t.Errorf("request %d: %+v", i, q)
		}
	}
}

// TestCheckErrors leave nothing joined.
func TestCheckErrors(t *testing.T) {
	request := Requests(registry(t))["cl.check"]
	const usage = "ERR Usage: cl.check <name> <key> [<quantity>] [DEBIT]"
	for args, want := range map[string]string{
		"":            usage,
		"login":       usage,
		"nosuch":      usage,
		"login k 1 1": usage,
		"nosuch k x":  "Cell error: Store error: Couldn't parse as integer: x",
		"nosuch k":    "ERR no such limit 'nosuch'; define it by CL.LIMIT SET or in --limits-file",
	} {
		var q store.Request
		var names Names
		if err := request(&q, 0, words("cl.check "+args), funnel.Burst, &names); err == nil || reply.Text(err) != want || len(names.Joined) > 0 || q.Key.Name != nil {
			t.Errorf("%q: %v, want %s; %+v", args, err, want, q)
		}
	}
}
