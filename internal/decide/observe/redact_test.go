package observe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// TestRedacted hides passwords, in a copy.
func TestRedacted(t *testing.T) {
	table := catalog.New()
	for _, tt := range []struct{ command, call, want string }{
		{"auth", "auth", "auth"},
		{"auth", "auth pw", "auth *"},
		{"auth", "auth name pw", "auth * *"},
		{"hello", "hello", "hello"},
		{"hello", "hello 3 AUTH name pw", "hello 3 AUTH * *"},
		{"hello", "hello 3 auth name pw setname x", "hello 3 auth * * setname x"},
		{"hello", "hello 3 setname auth x y auth name pw", "hello 3 setname auth x y auth * *"},
		{"hello", "hello auth auth auth auth name pw", "hello auth * * auth * *"},
		{"hello", "hello 3 auth name", "hello 3 auth *"},
		{"hello", "hello 3 auth", "hello 3 auth"},
		{"config|set", "config set requirepass pw", "config set requirepass *"},
		{"config|set", "config set maxclients requirepass masterauth pw x y", "config set maxclients requirepass masterauth * x y"},
		{"config|set", "config set MasterUser u tls-key-file-pass p tls-client-key-file-pass q", "config set MasterUser * tls-key-file-pass * tls-client-key-file-pass *"},
		{"config|set", "config set requirepass", "config set requirepass"},
		{"config|set", "requirepass masterauth x y", "requirepass masterauth x y"},
		{"config|get", "config get requirepass x", "config get requirepass x"},
		{"echo", "echo auth", "echo auth"},
	} {
		args := bytes.Fields([]byte(tt.call))
		got := string(bytes.Join(Redacted(table.LookupFull([]byte(tt.command)), args), []byte(" ")))
		if want := strings.ReplaceAll(tt.want, "*", "(redacted)"); got != want {
			t.Errorf("%s: got %s, want %s", tt.call, got, want)
		}
		if after := string(bytes.Join(args, []byte(" "))); after != tt.call {
			t.Errorf("%s became %s", tt.call, after)
		}
	}
}

func TestShortArgs(t *testing.T) {
	x := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	many := func(n int) (args [][]byte) {
		for i := range n {
			args = append(args, fmt.Append(nil, i))
		}
		return args
	}
	for _, tt := range []struct {
		name string
		args [][]byte
		n    int
		last string
	}{
		{"none", nil, 0, ""},
		{"short", [][]byte{[]byte("a"), x(maxSlowArgBytes)}, 2, string(x(maxSlowArgBytes))},
		{"long", [][]byte{x(maxSlowArgBytes + 2)}, 1, string(x(maxSlowArgBytes)) + "... (2 more bytes)"},
		{"as many as are kept", many(maxSlowArgs), maxSlowArgs, "31"},
		{"more", many(maxSlowArgs + 1), maxSlowArgs, "... (2 more arguments)"},
	} {
		got := ShortArgs(tt.args)
		if len(got) != tt.n || tt.n > 0 && got[tt.n-1] != tt.last {
			t.Errorf("%s: got %q", tt.name, got)
		}
	}
	batch := make([]store.Request, 3)
	batch[0].Key.Name = x(maxSlowArgBytes + 1)
	name := string(x(maxSlowArgBytes)) + "... (1 more bytes)"
	throttle := catalog.New().Lookup([]byte("cl.throttle"))
	if got := BatchArgs(throttle, batch[:1]); !slices.Equal(got, []string{"CL.THROTTLE", name}) {
		t.Errorf("got %q", got)
	}
	if got := BatchArgs(throttle, batch); !slices.Equal(got, []string{"CL.THROTTLE", name, "... (2 more calls in one batch)"}) {
		t.Errorf("got %q", got)
	}
}
