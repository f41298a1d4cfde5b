package limiter

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
)

// hourly returns a rule of one funnel in an hour: plain, or as that of a token bucket.
func hourly(t *testing.T, plain bool, capacity, count int64) Rule {
	t.Helper()
	l := mustFunnel(t, capacity, count, 3600)
	if plain {
		return OfNamed(NewNamedLimit([]NamedRule{PlainRule(l, 3600*sec)}, 0))
	}
	return OfNamed(NewNamedLimit([]NamedRule{OtherRule(OfFunnel(l), "bucket")}, 0))
}

// TestRaisedAndLowered: a debt is as many units of another rate; a lower rate fills at most, and never
// reduces the debt of a debit. Another capacity alone changes nothing.
func TestRaisedAndLowered(t *testing.T) {
	type charge struct{ capacity, count, quantity int64 }
	for name, tt := range map[string]struct {
		first, then charge
		debit       bool
		want        funnel.Result
	}{
		"raised frees":                      {charge{5, 5, 5}, charge{50, 50, 1}, false, funnel.Result{Limit: 50, Remaining: 44, RetryAfter: -1, ResetAfter: 432}},
		"raised, looked at":                 {charge{5, 5, 5}, charge{50, 50, 0}, false, funnel.Result{Limit: 50, Remaining: 45, RetryAfter: -1, ResetAfter: 360}},
		"raised, and denied":                {charge{5, 5, 5}, charge{5, 50, 1}, false, funnel.Result{Limited: true, Limit: 5, RetryAfter: 72, ResetAfter: 360}},
		"lowered fills at most":             {charge{50, 50, 40}, charge{5, 5, 1}, false, funnel.Result{Limited: true, Limit: 5, RetryAfter: 720, ResetAfter: 3600}},
		"lowered below the units":           {charge{50, 50, 2}, charge{5, 5, 1}, false, funnel.Result{Limit: 5, Remaining: 2, RetryAfter: -1, ResetAfter: 2160}},
		"lowered keeps a debt of debits":    {charge{5, 10, 20}, charge{5, 5, 1}, true, funnel.Result{Limited: true, Limit: 5, RetryAfter: 4320, ResetAfter: 7200}},
		"raised frees from a debt beyond":   {charge{5, 10, 20}, charge{5, 20, 1}, true, funnel.Result{Limited: true, Limit: 5, RetryAfter: 2880, ResetAfter: 3600}},
		"a larger capacity changes no debt": {charge{5, 5, 5}, charge{6, 5, 1}, false, funnel.Result{Limit: 6, RetryAfter: -1, ResetAfter: 4320}},
		"refunded in the new units":         {charge{5, 5, 5}, charge{50, 50, -4}, false, funnel.Result{Limit: 50, Remaining: 49, RetryAfter: -1, ResetAfter: 72}},
	} {
		for _, plain := range []bool{true, false} {
			first, then := hourly(t, plain, tt.first.capacity, tt.first.count), hourly(t, plain, tt.then.capacity, tt.then.count)
			if tt.debit {
				first.Flags = Debit
			}
			var s State
			mustDecide(t, &first, &s, t0, tt.first.quantity)
			before := Shifted(s, 0)
			if got := then.named().Look(0, &s, t0, tt.then.quantity); got != tt.want {
				t.Errorf("%s, plain %v: a look beside: got %+v, want %+v", name, plain, got, tt.want)
			}
			got := mustDecide(t, &then, &s, t0, tt.then.quantity)
			if got.Marks = 0; got != tt.want {
				t.Errorf("%s, plain %v: got %+v, want %+v", name, plain, got, tt.want)
			}
			if tt.then.quantity == 0 && !bytes.Equal(s.Payload, before.Payload) {
				t.Errorf("%s, plain %v: a look has written", name, plain)
			}
			if err := Valid(&s); err != nil {
				t.Errorf("%s, plain %v: %v", name, plain, err)
			}
		}
	}
}

// TestDenialRebases: the times of a denial by a new rate hold.
func TestDenialRebases(t *testing.T) {
	for _, plain := range []bool{true, false} {
		first, then := hourly(t, plain, 5, 5), hourly(t, plain, 5, 10)
		var s State
		mustDecide(t, &first, &s, t0, 5)
		denied := mustDecide(t, &then, &s, t0, 1)
		if !denied.Limited || denied.RetryAfter != 360 {
			t.Fatalf("got %+v", denied)
		}
		if got := mustDecide(t, &then, &s, t0+denied.RetryAfter*sec, 1); got.Limited {
			t.Errorf("plain %v: after its time to retry: %+v", plain, got)
		}
	}
}

// TestOverrideConvertsBack: an override by the same rule with other numbers continues the units, and its end
// converts what is left of them back.
func TestOverrideConvertsBack(t *testing.T) {
	for _, plain := range []bool{true, false} {
		own, override := hourly(t, plain, 10, 10), hourly(t, plain, 100, 100)
		override.named().Overridden = true
		var s State
		mustDecide(t, &own, &s, t0, 4)
		if got := mustDecide(t, &override, &s, t0, 1); got.Remaining != 95 {
			t.Errorf("plain %v: by the override: %+v", plain, got)
		}
		if got := mustDecide(t, &own, &s, t0, 0); got.Remaining != 5 {
			t.Errorf("plain %v: when it has ended: %+v", plain, got)
		}
	}
}

// firstForm returns the encoding by versions whose funnels had no interval.
func firstForm(s *State) []byte {
	var payload []byte
	for _, e := range entries(s.Payload) {
		payload = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(payload, e.id), uint64(e.expiresNs))
		kept := e.payload
		if e.kind() == Funnel {
			kept = nil
		}
		if !isPlainID(e.id) {
			payload = append(binary.LittleEndian.AppendUint32(payload, uint32(len(kept))), kept...)
		}
	}
	b := binary.LittleEndian.AppendUint64([]byte{byte(Named)}, uint64(s.ExpiresNs))
	return append(binary.AppendUvarint(b, uint64(len(payload))), payload...)
}

// TestFirstForm: entries without an interval are as charged by the first rule that meets them, also one that
// denies.
func TestFirstForm(t *testing.T) {
	for _, plain := range []bool{true, false} {
		first, then, last := hourly(t, plain, 5, 5), hourly(t, plain, 4, 4), hourly(t, plain, 40, 40)
		var s State
		mustDecide(t, &first, &s, t0, 5)
		old := firstForm(&s)
		got, rest, ok := ReadState(old)
		if !ok || len(rest) > 0 || got.ExpiresNs != s.ExpiresNs {
			t.Fatalf("plain %v: got %+v, %v", plain, got, ok)
		}
		if r := mustDecide(t, &then, &got, t0, 1); !r.Limited || r.ResetAfter != 3600 {
			t.Errorf("plain %v: by the first rule: %+v", plain, r)
		}
		if r := mustDecide(t, &last, &got, t0, 1); r.Remaining != 35 {
			t.Errorf("plain %v: by the next one: %+v", plain, r)
		}
		for i := range old {
			ReadState(old[:i]) // must not panic
		}
	}
	if _, _, ok := ReadState([]byte{byte(FixedWindow) | secondForm, 0, 0, 0, 0, 0, 0, 0, 0, 0}); ok {
		t.Error("another kind has no second form")
	}
}

// TestMixedFirstForm: windows beside funnels are read as they were.
func TestMixedFirstForm(t *testing.T) {
	random := rand.New(rand.NewPCG(47, 2))
	for range 200 {
		var rules []NamedRule
		for i, kind := range []Kind{Funnel, FixedWindow, SlidingWindow, Quota, Funnel} {
			switch {
			case random.IntN(3) == 0:
			case i == 0:
				rules = append(rules, PlainRule(mustFunnel(t, 50, 50, 60), 60*sec))
			default:
				rules = append(rules, OtherRule(ruleOf(t, kind), string(rune('a'+i))))
			}
		}
		r := OfNamed(NewNamedLimit(rules, 0))
		var s State
		for range 3 {
			mustDecide(t, &r, &s, t0, 1)
		}
		if s.ExpiresNs <= t0 {
			continue
		}
		got, _, ok := ReadState(firstForm(&s))
		if !ok {
			t.Fatalf("%+v is not read", s)
		}
		mustDecide(t, &r, &got, t0+sec, 1)
		mustDecide(t, &r, &s, t0+sec, 1)
		if got.ExpiresNs != s.ExpiresNs || !bytes.Equal(got.Payload, s.Payload) {
			t.Errorf("got %+v, want %+v", got, s)
		}
	}
	if withIntervals(make([]byte, (MaxRules+1)*plainHeadBytes)) != nil {
		t.Errorf("more than %d entries are read", MaxRules)
	}
}
