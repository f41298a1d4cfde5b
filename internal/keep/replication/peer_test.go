package replication

import (
	"testing"
	"time"
)

// TestTwoLeaders: of two that see each other the one leads whose states go on from the other's. Where
// neither's do, both say so, and nobody yields.
func TestTwoLeaders(t *testing.T) {
	for _, isRelated := range []bool{true, false} {
		inWeb(t, 10*time.Millisecond, mishap{name: "none", peers: true}, false, func(w *web) {
			w.mu.Lock()
			w.stalledUntil = time.Now().Add(10 * time.Second)
			w.mu.Unlock()
			time.Sleep(2 * time.Second)
			if err := w.b.node.Lead(); err != nil { // a is silent
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if !w.leads(w.a) || !w.leads(w.b) {
				t.Fatal("not two leaders")
			}
			if !isRelated { // as a leader that was started again after a crash
				w.a.node.mu.Lock()
				w.a.node.history = newHistory()
				w.a.node.mu.Unlock()
			}
			time.Sleep(30 * time.Second)
			if got := w.leads(w.a); got == isRelated || !w.leads(w.b) {
				t.Errorf("related %t: a leads: %t; b: %t", isRelated, got, w.leads(w.b))
			}
			for _, h := range []*host{w.a, w.b} {
				if got := h.node.Status().PeerLeads; got == isRelated {
					t.Errorf("related %t: %s says that the peer leads: %t", isRelated, h.at.Host, got)
				}
			}
		})
	}
}

// TestCircle: of two servers that follow each other, as when the one that was to lead has forgotten it, the
// one leads that has more, or else one of them; of unrelated ones the one that has handed over.
func TestCircle(t *testing.T) {
	nothing, more := func(*Node) {}, func(n *Node) { n.backlog.reset(n.backlog.end + 1) }
	for _, tt := range []struct {
		name  string
		a, b  func(n *Node)
		leads string // "" for either
	}{
		{"equal", nothing, nothing, ""},
		{"b has more", nothing, more, "b"},
		{"a has more", more, nothing, "a"},
		{"a has handed over, b was started again", func(a *Node) { a.gave = true }, func(b *Node) { b.history = newHistory() }, "a"},
	} {
		inWeb(t, 10*time.Millisecond, mishaps()[0], false, func(w *web) {
			w.a.node.Follow(w.b.at)
			time.Sleep(time.Second)
			for n, do := range map[*Node]func(n *Node){w.a.node: tt.a, w.b.node: tt.b} {
				n.mu.Lock()
				do(n)
				n.unlock()
			}
			time.Sleep(30 * time.Second)
			if w.leads(w.a) == w.leads(w.b) || tt.leads != "" && w.leads(w.a) != (tt.leads == "a") {
				t.Errorf("%s: a leads: %t, b: %t", tt.name, w.leads(w.a), w.leads(w.b))
			}
		})
	}
}
