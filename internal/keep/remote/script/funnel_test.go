package script

import (
	"math"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestRunsOfManyUnits: requests for at most very many units, joined, are no refund.
func TestRunsOfManyUnits(t *testing.T) {
	l, err := funnel.NewLimit(funnel.Capacity, NativeMost-1, 1_000_000, 1)
	if err != nil {
		t.Fatal(err)
	}
	q := store.Request{Rule: limiter.OfFunnel(l), Quantity: math.MaxInt64}
	q.Rule.Flags = limiter.AtMost
	var w Runs
	for range math.MaxInt64 / NativeMost * 3 / 2 {
		if !IsRun(&q) || !w.Fits(&q) {
			t.Fatal("it is not joined")
		}
		w.Add(&q)
	}
	args := w.Args()
	if n := args[0].(int64); n < NativeMost || len(args) != 10 || args[5].(int64) < NativeMost {
		t.Errorf("the arguments are %v", args)
	}
}
