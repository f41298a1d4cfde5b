package store_test

import (
	"strconv"
	"testing"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestComparisonBehind: a TAT is compared as GET returns it, which is by the clock of the store.
func TestComparisonBehind(t *testing.T) {
	const nowNs, tatNs = int64(time.Hour), int64(time.Hour + time.Minute)
	for _, byNs := range []int64{0, 12_345, -int64(time.Second)} {
		s := limiter.State{ExpiresNs: tatNs}
		got := store.Request{}
		got.Rule.Read(nil)
		if _, err := got.Do(&s, nowNs); err != nil {
			t.Fatal(err)
		}
		for with, want := range map[int64]bool{got.Result.Limit: true, tatNs + 1: false} {
			w := store.Setting{When: store.IfFound, If: &limiter.Comparison{By: limiter.Equal, With: strconv.AppendInt(nil, with, 10)}}
			if _, err := w.DoBehind(&limiter.State{ExpiresNs: tatNs}, nowNs, byNs); err != nil || w.Held != want {
				t.Errorf("behind by %d, compared with %d: %t, %v", byNs, with, w.Held, err)
			}
		}
	}
}
