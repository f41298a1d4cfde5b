package session

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/redis/execute"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// TestHandlersFit: an engine requires a handler of each row's kind.
func TestHandlersFit(t *testing.T) {
	plain := execute.Plain(func(execute.Call, [][]byte) error { return nil })
	whole := execute.Whole(func(execute.Call, store.Walker, [][]byte) error { return nil })
	connection := execute.OnConnection(func(execute.Call, execute.Connection, [][]byte) error { return nil })
	const missing, wrong = "it has no handler", "its handler is for all keys and its flags are not, or the other way round"
	for _, tt := range []struct {
		name, command string
		handler       execute.Handler
		want          string // in the error
	}{
		{"plain", "ping", plain, ""},
		{"of the connection", "ping", connection, ""},
		{"for all keys", "dbsize", whole, ""},
		{"missing", "ping", execute.Handler{}, missing},
		{"missing, of all keys", "dbsize", execute.Handler{}, missing},
		{"missing, of a subcommand", "client|id", execute.Handler{}, missing},
		{"missing, of a command with subcommands that is one itself", "command", execute.Handler{}, missing},
		{"missing, of what has only subcommands", "client", execute.Handler{}, ""},
		{"missing, of what is refused", "psubscribe", execute.Handler{}, ""},
		{"missing, of what is batched", "cl.throttle", execute.Handler{}, ""},
		{"missing, of the package's own", "exec", execute.Handler{}, ""},
		{"for all keys of what is not about them", "ping", whole, wrong},
		{"for all keys of what is about some", "ttl", whole, wrong},
		{"plain of what is about all keys", "dbsize", plain, wrong},
		{"of the connection of what is about all keys", "dbsize", connection, wrong},
	} {
		r := newHarness(t)
		config := r.Config
		config.Handlers[tt.command] = tt.handler
		_, err := NewEngine(config)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || err.Error() != "session: bind "+tt.command+": "+tt.want):
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// TestHandlersReachNoStore except through their arguments.
func TestHandlersReachNoStore(t *testing.T) {
	forbidden := []reflect.Type{reflect.TypeFor[store.Keys](), reflect.TypeFor[store.Walker](), reflect.TypeFor[store.Transactor]()}
	for _, given := range []reflect.Type{reflect.TypeFor[execute.Call](), reflect.TypeFor[execute.Connection]()} {
		for i := range given.NumField() {
			if given.Field(i).IsExported() {
				t.Errorf("%v has the field %s", given, given.Field(i).Name)
			}
		}
		for method := range given.Methods() {
			for out := range method.Type.Outs() {
				if slices.ContainsFunc(forbidden, out.Implements) || out == reflect.TypeFor[*execute.Executor]() {
					t.Errorf("%v.%s returns %v", given, method.Name, out)
				}
			}
		}
	}
}

// TestWhole: a handler for all keys has the store, the exclusive one in EXEC, and none in scripts.
func TestWhole(t *testing.T) {
	var given []store.Walker
	r := newHarness(t, func(c *execute.Config) {
		c.Handlers["dbsize"] = execute.Whole(func(c execute.Call, all store.Walker, _ [][]byte) error {
			given = append(given, all)
			c.Reply().OK()
			return nil
		})
	})
	s := r.session()
	s.say(t, "DBSIZE\r\nMULTI\r\nDBSIZE\r\nPING\r\nDBSIZE\r\nEXEC\r\n")
	got := s.say(t, "EVAL \"return redis.call('dbsize')\" 0\r\n")
	if len(given) != 3 || given[0] != r.Config.Store.(store.Walker) || given[1] != given[2] {
		t.Fatalf("given %v", given)
	}
	if _, ok := given[1].(store.Exclusive); !ok {
		t.Errorf("given %T within EXEC", given[1])
	}
	if !strings.HasPrefix(got, "-ERR a command about all keys is not allowed from a script") {
		t.Errorf("in a script: %q", got)
	}
	for _, c := range r.Config.Catalog.Commands() {
		if (r.Handlers[c.ID].Whole != nil) != (c.Flags&catalog.FlagWhole != 0) && c.Refusal == "" {
			t.Errorf("%s: its handler is given the store: %t", c.FullName(), r.Handlers[c.ID].Whole != nil)
		}
	}
}
