package actions

import "testing"

// TestMoney: a refund in dollars is asked for and told in dollars, and a limit that becomes a shadow keeps
// its unit and max_reservation.
func TestMoney(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.say(t, "CL.LIMIT SET spend FIXEDWINDOW 50000000 60 UNIT usd MAXRESERVATION 0.5\r\nCL.CHECK spend k 20000000\r\n")
	ann := h.signedIn(t, "ann", "secret")
	do := func(title, command, done string, fields ...string) {
		t.Helper()
		code, asked := ann.send(t, ActPath, fields...)
		if code != 200 || asked.Ask == nil || asked.Ask.Title != title || asked.Ask.Command != command {
			t.Fatalf("%v: %d, %+v with %+v", fields, code, asked, asked.Ask)
		}
		if code, got := ann.send(t, ActPath, "confirm", asked.Ask.Token); code != 200 || got.Done != done {
			t.Errorf("%v: %d, %+v", fields, code, got)
		}
	}
	do("Refund $12.34 to spend:k?", "CL.CHECK spend k -12340000", "Refunded to spend:k: $42.34 of $50.00 are available.",
		"action", Refund, "key", "k", "limit", "spend", "units", "12340000")
	before := h.Config.NamedLimits.Lookup([]byte("spend")).Definition
	do("Turn the limit spend into a shadow? It no longer limits, and only counts what it would.", "CL.LIMIT SET spend FIXEDWINDOW 50000000 60 SHADOW SAMERULES",
		"spend is a shadow: it only counts.", "action", Shadow, "limit", "spend")
	if d := h.Config.NamedLimits.Lookup([]byte("spend")); !d.Shadow || d.Unit != before.Unit || d.MaxReservation != before.MaxReservation {
		t.Errorf("the shadow is %+v", d.Definition)
	}
	do("Enforce the limit spend? It limits requests from then on.", "CL.LIMIT SET spend FIXEDWINDOW 50000000 60 SAMERULES",
		"spend is enforced.", "action", EndShadow, "limit", "spend")
	if d := h.Config.NamedLimits.Lookup([]byte("spend")).Definition; !d.Equal(&before) {
		t.Errorf("enforced, it is %+v", d)
	}
}
