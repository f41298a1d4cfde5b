package command

import (
	"strconv"
	"strings"
	"testing"
)

// FuzzArguments takes any five arguments for CL.THROTTLE's. One reply comes, in one piece, and keeps the contract.
func FuzzArguments(f *testing.F) {
	for _, seed := range [][5]string{
		{"user123", "15", "30", "60", "1"},
		{"", "+0", "00030", "60", "-1"},
		{"\x00\xff", "4", "1", "10", "9223372036854775807"},
		{"k", "-1", "0", "-60", "-9223372036854775808"},
		{"k", "9223372036854775807", "1", "1", "0"},
		{"k", "0", "1", "4611686018", "1"},
		{"k", "4611686018427387903", "1000000000", "1", "4611686018427387904"},
		{"k", "1\r\n+OK\r\n", "\x1b", "\u009b", "漢"},
		{strings.Repeat("k", testMaxKeyBytes+1), "", "-", "+", "1.0"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	f.Fuzz(func(t *testing.T, key, maxBurst, count, period, quantity string) {
		r := newRig()
		s := r.session()
		call := encode("CL.THROTTLE", key, maxBurst, count, period, quantity)
		all := parseReplies(t, say(t, s, call+"PING\r\n"+call+"PING\r\n"))
		if len(all) != 4 || all[1].text != "PONG" || all[3].text != "PONG" || all[0].kind != all[2].kind {
			t.Fatalf("got %+v", all)
		}
		if all[0].kind == '-' {
			const most = len("Cell error: Store error: ") + 200
			if st := r.stats(); len(all[0].text) > most || st.Keys != 0 || st.Allowed+st.Denied != 0 || all[0].text != all[2].text {
				t.Fatalf("got %q, %q, and the store holds %+v", all[0].text, all[2].text, st)
			}
			return
		}
		asked, _ := strconv.ParseInt(quantity, 10, 64)
		checkFive(t, all[0], asked)
		checkFive(t, all[2], asked)
		if st := r.stats(); st.Allowed+st.Denied != 2 || st.Keys > 1 || st.Keys > 0 && asked <= 0 {
			t.Fatalf("the store holds %+v", st)
		}
	})
}

// checkFive checks what holds for every reply to a call for so many units.
func checkFive(t *testing.T, r reply, asked int64) {
	t.Helper()
	if r.kind != '*' || len(r.elements) != 5 {
		t.Fatalf("got %+v", r)
	}
	var n [5]int64
	for i, e := range r.elements {
		if e.kind != ':' {
			t.Fatalf("number %d of %+v", i, r)
		}
		n[i] = e.number
	}
	limited, limit, remaining, retryAfter, resetAfter := n[0], n[1], n[2], n[3], n[4]
	switch {
	case limited != 0 && limited != 1, limit < 1, remaining < 0 || remaining > limit, resetAfter < 0,
		limited == 0 && retryAfter != -1,
		limited == 1 && asked <= limit && retryAfter < 0,
		limited == 1 && asked > limit && retryAfter != -1,
		limited == 0 && asked > limit,
		limited == 1 && asked <= 0,
		limited == 1 && asked <= remaining,
		retryAfter > resetAfter:
		t.Fatalf("a call for %d: %v", asked, n)
	}
}
