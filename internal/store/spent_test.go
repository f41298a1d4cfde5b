package store

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/limiter"
)

func spent(limit string, day int32, units int64) Spent { return Spent{SpentAt{limit, day}, units} }

func wantSpent(t *testing.T, got []Spent, want ...Spent) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestBook: units add up by limit and day, and each change is reported once, with the sum.
func TestBook(t *testing.T) {
	var b Book
	wantSpent(t, b.Of("").Sorted())
	wantSpent(t, b.Changed())
	b.Add(SpentAt{"org", 2}, 5)
	b.Add(SpentAt{"org", 1}, 7)
	b.Add(SpentAt{"org", 2}, -3)
	b.Add(SpentAt{"user", -1}, 1)
	all := []Spent{spent("org", 1, 7), spent("org", 2, 2), spent("user", -1, 1)}
	wantSpent(t, b.Of("").Sorted(), all...)
	wantSpent(t, b.Changed(), all...)
	wantSpent(t, b.Changed())
	b.Add(SpentAt{"org", 1}, -7)
	b.Restore(spent("org", 2, 9))
	wantSpent(t, b.Changed(), spent("org", 1, 0), spent("org", 2, 9))
	wantSpent(t, b.Of("").Sorted(), spent("org", 1, 0), spent("org", 2, 9), spent("user", -1, 1))

	var other Book
	other.Add(SpentAt{"new", 3}, 4)
	b.Replace(&other)
	wantSpent(t, b.Changed(), spent("new", 3, 4))
	wantSpent(t, b.Of("").Sorted(), spent("new", 3, 4))
	b.Replace(&Book{})
	b.Add(SpentAt{"org", 1}, 1)
	wantSpent(t, b.Of("").Sorted(), spent("org", 1, 1))
}

// TestBookForgets: the newest 31 days of a limit are kept, in whatever order they come, and are told alike by
// a book that follows.
func TestBookForgets(t *testing.T) {
	var b, follower Book
	for i := range int32(100) {
		day := i * 37 % 100
		b.Add(SpentAt{"org", day}, int64(day))
		b.Add(SpentAt{"org", day}, 1)
		for _, s := range b.Changed() {
			follower.Restore(s)
		}
	}
	var want []Spent
	for day := int32(100 - SpentDays); day < 100; day++ {
		want = append(want, spent("org", day, int64(day)+1))
	}
	wantSpent(t, b.Of("").Sorted(), want...)
	wantSpent(t, follower.Of("").Sorted(), want...)
	b.Add(SpentAt{"org", 5}, 1) // older than all
	b.Restore(spent("org", 6, 1))
	wantSpent(t, b.Of("").Sorted(), want...)
	wantSpent(t, b.Changed())
	b.Add(SpentAt{"other", 5}, 1)
	if got := len(b.Of("").Sorted()); got != SpentDays+1 {
		t.Errorf("%d days with those of another limit", got)
	}
}

// TestBookSaturates: sums stay at the ends of 64 bits.
func TestBookSaturates(t *testing.T) {
	for _, sign := range []int64{1, -1} {
		var b Book
		var sum Spends
		at := SpentAt{"org", 1}
		for range 3 {
			b.Add(at, sign*(math.MaxInt64-1))
			sum.Add(at, sign*(math.MaxInt64-1))
		}
		want := int64(math.MaxInt64)
		if sign < 0 {
			want = math.MinInt64
		}
		wantSpent(t, b.Of("").Sorted(), spent("org", 1, want))
		wantSpent(t, sum.Sorted(), spent("org", 1, want))
	}
	var n limiter.Notes
	for range 3 {
		n.Spend(7, math.MaxInt64)
	}
	n.Spend(7, -1)
	if got := slices.Collect(n.Spent); !reflect.DeepEqual(got, []limiter.Spent{{AtNs: 7, Units: math.MaxInt64 - 1}}) {
		t.Errorf("noted %v", got)
	}
}

// TestBookIsBounded, whatever keys and times there are.
func TestBookIsBounded(t *testing.T) {
	var b Book
	for i := range mostHoldNames + 10 {
		for at := range int64(SpentDays + 2) {
			var n limiter.Notes
			n.Spend(at*dayNs, 1)
			b.Enter(fmt.Appendf(nil, "limit%d:%d", i, at), &n, nil)
		}
	}
	if got, most := len(b.Of("").Sorted()), mostHoldNames*SpentDays; got != most {
		t.Errorf("%d are kept, of at most %d", got, most)
	}
	b = Book{}
	for _, name := range []string{strings.Repeat("x", mostHoldNameBytes), strings.Repeat("x", mostHoldNameBytes+1), "none", ":", ""} {
		var n limiter.Notes
		n.Spend(0, 1)
		b.Enter([]byte(name), &n, nil)
	}
	wantSpent(t, b.Of("").Sorted(), spent("", 0, 3), spent("none", 0, 1), spent(strings.Repeat("x", mostHoldNameBytes), 0, 1))
}

// TestBookOfUndefinedLimits: names that never had a limit, as restored keys may have, are left out. What is
// spent under the name of one that is deleted counts on.
func TestBookOfUndefinedLimits(t *testing.T) {
	limits := map[string]bool{"org": true}
	b := Book{At: func(limit []byte, atNs int64) (SpentAt, bool) {
		return SpentAt{string(limit), int32(atNs / dayNs)}, limits[string(limit)]
	}}
	enter := func(key string, units int64) {
		var n limiter.Notes
		n.Spend(dayNs, units)
		b.Enter([]byte(key), &n, nil)
	}
	enter("org:a", 5)
	enter("other:a", -5)
	wantSpent(t, b.Of("").Sorted(), spent("org", 1, 5))
	delete(limits, "org")
	enter("org:a", -3)
	wantSpent(t, b.Of("").Sorted(), spent("org", 1, 2))
}

// TestBookForgetsIdleLimits: if there are too many, the one that has not spent for the longest time makes
// room for one that spends later, and is not reported.
func TestBookForgetsIdleLimits(t *testing.T) {
	var b, follower Book
	for i := range mostHoldNames {
		b.Add(SpentAt{fmt.Sprintf("l%04d", i), int32(mostHoldNames - i)}, 1)
	}
	follow := func() {
		for _, s := range b.Changed() {
			follower.Restore(s)
		}
		t.Helper()
		wantSpent(t, follower.Of("").Sorted(), b.Of("").Sorted()...)
	}
	follow()
	oldest, next := fmt.Sprintf("l%04d", mostHoldNames-1), fmt.Sprintf("l%04d", mostHoldNames-2)
	b.Add(SpentAt{"early", 1}, 1)
	wantSpent(t, b.Changed())
	b.Add(SpentAt{"new", 2}, 1)
	follow()
	b.Add(SpentAt{"newer", 2}, 1)
	wantSpent(t, b.Of("newer").Sorted())
	b.Add(SpentAt{next, 2}, 1)
	b.Add(SpentAt{"newer", 3}, 1)
	wantSpent(t, b.Changed(), spent("newer", 3, 1))
	for _, name := range []string{"early", oldest, next} {
		wantSpent(t, b.Of(name).Sorted())
	}
	wantSpent(t, b.Of("new").Sorted(), spent("new", 2, 1))
	if n := len(b.limits); n != mostHoldNames {
		t.Errorf("%d limits", n)
	}
}

// TestNotes: those of one time are one, and a copy is not changed by what is noted later.
func TestNotes(t *testing.T) {
	var n limiter.Notes
	want := func(n *limiter.Notes, want ...limiter.Spent) {
		t.Helper()
		if got := slices.Collect(n.Spent); !slices.Equal(got, want) || n.HasSpent() != (len(want) > 0) || n.IsZero() == (len(want) > 0) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	(*limiter.Notes)(nil).Spend(1, 1)
	want(&n)
	n.Spend(1, 5)
	n.Spend(1, 2)
	n.Spend(2, 0)
	want(&n, limiter.Spent{AtNs: 1, Units: 7})
	n.Spend(2, -1)
	n.Spend(3, 4)
	before := n
	want(&before, limiter.Spent{AtNs: 1, Units: 7}, limiter.Spent{AtNs: 2, Units: -1}, limiter.Spent{AtNs: 3, Units: 4})
	n.Spend(3, 1)
	n.Spend(4, 1)
	again := before
	again.Spend(5, 9)
	again.Spend(6, 9)
	want(&before, limiter.Spent{AtNs: 1, Units: 7}, limiter.Spent{AtNs: 2, Units: -1}, limiter.Spent{AtNs: 3, Units: 4})
	n.Reset()
	want(&n)
	n.Spend(1, 3)
	n.Spend(1, -3)
	want(&n)
	for range n.Spent { // which may end early
		break
	}
}
