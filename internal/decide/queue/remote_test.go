package queue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/limiter"
)

// enterRemote enters a waiter already charged.
func (r *harness) enterRemote(t *testing.T, quantity, number int, givenBack *[]int) *Waiter {
	t.Helper()
	s := limiter.State{ExpiresNs: now() + int64(10*time.Second)}
	o := limiter.Operation{Verb: limiter.Wait, Funnel: limitOf(t, 9, 1, 1), Quantity: int64(quantity), TTLNs: int64(time.Hour)}
	if _, err := o.Do(&s, now()); err != nil || o.WaitNs != int64(time.Duration(quantity)*time.Second) {
		t.Fatalf("waits %s, %v", time.Duration(o.WaitNs), err)
	}
	return r.EnterRemote(now(), &o, wokenAs{r, number}, func(then func()) {
		*givenBack = append(*givenBack, number)
		then()
	})
}

// TestRemote: each waits for its own turn, and a leaver's charge is returned once.
func TestRemote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness()
		var givenBack []int
		first, leaves, ended := r.enterRemote(t, 1, 1, &givenBack), r.enterRemote(t, 2, 2, &givenBack), r.enterRemote(t, 9, 3, &givenBack)
		if !leaves.Leave(Unblocked) || leaves.Leave(Cancelled) || leaves.Outcome() != Unblocked {
			t.Errorf("it left as %d", leaves.Outcome())
		}
		r.checkWoken(t, 2)
		if got := leaves.Result(now()); !got.Limited || got.Remaining != 0 || got.RetryAfter != 2 || got.ResetAfter != 10 {
			t.Errorf("who left has %+v", got)
		}
		time.Sleep(time.Second - time.Nanosecond)
		synctest.Wait()
		r.checkWoken(t)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		r.checkWoken(t, 1)
		if got := first.Result(now()); got.Limited || got.Remaining != 0 || got.RetryAfter != -1 || got.ResetAfter != 10 || first.Leave(Cancelled) {
			t.Errorf("the first has %+v", got)
		}
		r.End()
		r.checkWoken(t, 3)
		late := r.enterRemote(t, 1, 4, &givenBack)
		r.checkWoken(t, 4)
		if ended.Outcome() != Ended || late.Outcome() != Ended || !slices.Equal(givenBack, []int{2, 3, 4}) || len(r.remote) != 0 {
			t.Errorf("outcomes %d and %d, given back %v, %d are left", ended.Outcome(), late.Outcome(), givenBack, len(r.remote))
		}
	})
}
