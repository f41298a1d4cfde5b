package limits

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
)

// replies are a server's replies by the words of the commands.
type replies map[string]any

func (r replies) Name() string { return "peer:1" }

func (r replies) Do(_ context.Context, commands ...[]any) (all []any, err error) {
	for _, words := range commands {
		texts := make([]string, len(words))
		for i, word := range words {
			texts[i], _ = word.(string)
		}
		reply, known := r[strings.Join(texts, " ")]
		if failed, is := reply.(error); is {
			return nil, failed
		}
		if !known {
			return nil, errors.New("no reply to " + strings.Join(texts, " "))
		}
		all = append(all, reply)
	}
	return all, nil
}

type list = []any

// oneLimit is a server with a limit that has these fields more.
func oneLimit(fields ...any) replies {
	usual := list{"name", "a", "shadow", int64(1), "source", "file", "near_share", "0.5", "rules", list{list{"rule", "x: FUNNEL 4 5 60"}}}
	return replies{
		"CL.LIMIT LIST": list{"a"}, "CONFIG GET burst-is-capacity": list{"burst-is-capacity", "no"},
		"CL.LIMIT GET a": append(usual, fields...),
	}
}

func (r replies) with(words string, reply any) replies {
	r[words] = reply
	return r
}

func TestRead(t *testing.T) {
	t.Parallel()
	const pages, first, second = "CL.LIMIT OVERRIDES a", "0", "77"
	r := oneLimit("policy", "FUNNEL 4 5 60", "file_overrides", int64(4), "override_keys", int64(3)).
		with(pages+" "+first+" FILE", list{second, list{
			list{"key", "k", "DENY", list{}}, list{"pattern", "p*", "PLAN gold", list{"FIXEDWINDOW 5 60"}},
		}}).
		with(pages+" "+second+" FILE", list{"0", list{
			list{"key", "l", "DENY", list{}}, list{"key", "m", "FIXEDWINDOW 6 60", list{"y: FIXEDWINDOW 6 60"}},
		}}).
		with(pages+" 0", list{"0", list{
			list{"m", "PLAN gold", int64(-1)}, list{"n", "PLAN tin", int64(5)}, list{"o", "PLAN gone", int64(5)},
		}}).
		with("CL.LIMIT EXPLAIN a n", list{"command: PLAN tin", list{"z: FIXEDWINDOW 7 60", list{}}}).
		with("CL.LIMIT EXPLAIN a o", list{nil, list{"FUNNEL 4 5 60", list{}}})
	got, err := Read(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	window := func(name string, capacity int64) []namedlimit.Rule {
		return []namedlimit.Rule{{Algorithm: namedlimit.FixedWindow, Name: name, Capacity: capacity, PeriodSec: 60}}
	}
	a := got.Limits["a"]
	if a.Name != "a" || !a.Shadow || a.Near != 0.5 || got.Reading != funnel.Burst || len(got.ByCommand) > 0 ||
		!reflect.DeepEqual(a.Rules, []namedlimit.Rule{{Name: "x", Capacity: 5, Count: 5, PeriodSec: 60}}) {
		t.Errorf("got %+v", got)
	}
	if want := map[string][]namedlimit.Rule{"gold": window("", 5), "tin": window("z", 7)}; !reflect.DeepEqual(got.Plans, want) {
		t.Errorf("got plans %+v", got.Plans)
	}
	o := a.Overrides
	if len(o) != 3 || !reflect.DeepEqual(o[0].Keys, []string{"k", "l"}) || o[1].Pattern != "p*" || o[1].Plan != "gold" || !reflect.DeepEqual(o[2].Rules, window("y", 6)) {
		t.Errorf("got overrides %+v", o)
	}
}

// TestReadOptions: a server's unit and max_reservation are read, also as null, and the rules of a plan from
// texts with amounts.
func TestReadOptions(t *testing.T) {
	t.Parallel()
	plain := oneLimit("policy", "FUNNEL 4 5 60", "unit", nil, "max_reservation", nil)
	spend := oneLimit("policy", "FUNNEL 4 5 60", "override_keys", int64(1), "unit", "usd", "max_reservation", "0.25").
		with("CL.LIMIT OVERRIDES a 0", list{"0", list{list{"n", "PLAN tin", int64(5)}}}).
		with("CL.LIMIT EXPLAIN a n", list{"command: PLAN tin", list{"z: FIXEDWINDOW 7 60 ($0.000005 of $0.000007 left)", list{}}})
	got, err := Read(t.Context(), plain)
	if l := got.Limits["a"]; err != nil || l.Unit != "" || l.MaxReservation != 0 {
		t.Errorf("got %+v, %v", l, err)
	}
	got, err = Read(t.Context(), spend)
	if err != nil {
		t.Fatal(err)
	}
	if l := got.Limits["a"]; l.Unit != namedlimit.USD || l.MaxReservation != 0.25 {
		t.Errorf("got %+v", l)
	}
	if want := []namedlimit.Rule{{Algorithm: namedlimit.FixedWindow, Name: "z", Capacity: 7, PeriodSec: 60}}; !reflect.DeepEqual(got.Plans["tin"], want) {
		t.Errorf("got plans %+v", got.Plans)
	}
}

// TestStrangeReplies: each has one line with the server's name.
func TestStrangeReplies(t *testing.T) {
	t.Parallel()
	const newer = " is not understood; use the server's version of cellserver"
	overrides := func(reply any) replies {
		return oneLimit("policy", "DENY", "file_overrides", int64(1)).with("CL.LIMIT OVERRIDES a 0 FILE", reply)
	}
	commands := func(reply, explained any) replies {
		return oneLimit("policy", "DENY", "override_keys", int64(1)).with("CL.LIMIT OVERRIDES a 0", reply).with("CL.LIMIT EXPLAIN a k", explained)
	}
	failed := errors.New("failed")
	for _, tt := range []struct {
		server replies
		want   string
	}{
		{oneLimit().with("CONFIG GET burst-is-capacity", list{}), "it does not tell its setting burst-is-capacity, so it is an older cellserver"},
		{oneLimit(), "the limit a: the server is older, and does not tell its policy; update it, or compare files"},
		{oneLimit("policy", "LEAKY 1"), `the limit a: the reply "LEAKY 1"` + newer},
		{oneLimit("policy", "DENY 1"), `the limit a: the reply "DENY 1"` + newer},
		{oneLimit("policy", "FUNNEL 4 5 60", "rules", list{list{"rule", "FUNNEL 4 5 60 NEW"}}), `the limit a: the reply "FUNNEL 4 5 60 NEW"` + newer},
		{oneLimit("policy", "DENY", "near_share", "x"), `the limit a: the reply "x"` + newer},
		{overrides("x"), `the limit a: the reply "x"` + newer},
		{overrides(list{"0", list{"x"}}), `the limit a: the reply "[]"` + newer},
		{overrides(list{"0", list{list{"key", "k", "LEAKY", list{}}}}), `the limit a: the reply "LEAKY"` + newer},
		{overrides(list{"0", list{}}), "the limit a: the server lists 0 of 1 overrides; give a user in the URL who may read all keys, or try again if limits were reloaded"},
		{commands(list{"0", list{"x"}}, nil), `the limit a: the reply "[]"` + newer},
		{oneLimit("policy", "DENY", "unit", "eur"), `the limit a: the reply "eur"` + newer},
		{oneLimit("policy", "DENY", "max_reservation", "x"), `the limit a: the reply "x"` + newer},
		{commands(list{"0", list{list{"k", "PLAN p", int64(1)}}}, list{"command: PLAN p", "x"}), `the limit a: the reply "x"` + newer},
	} {
		if _, err := Read(t.Context(), tt.server); err == nil || err.Error() != "peer:1: "+tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	for words := range commands(list{"0", list{list{"k", "PLAN p", int64(1)}}}, nil) {
		server := commands(list{"0", list{list{"k", "PLAN p", int64(1)}}}, nil).with(words, failed)
		if _, err := Read(t.Context(), server); !errors.Is(err, failed) {
			t.Errorf("%s: got %v", words, err)
		}
	}
	gone := oneLimit().with("CL.LIMIT GET a", nil)
	if got, err := Read(t.Context(), gone); err != nil || len(got.Limits) > 0 {
		t.Errorf("a limit that is deleted meanwhile: %+v, %v", got, err)
	}
}
