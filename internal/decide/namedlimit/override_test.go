package namedlimit

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"cellserver/internal/limiter"
)

// TestMostOverrides: one more is refused, unless another has ended.
func TestMostOverrides(t *testing.T) {
	t.Parallel()
	nowNs := int64(1000)
	r := New(Config{Now: func() int64 { return nowNs }, Log: slog.New(slog.DiscardHandler)})
	mustSet(t, r, definition("a", 5))
	deny := func(key string, untilNs int64) KeyOverride {
		return KeyOverride{Limit: "a", Key: key, Policy: Policy{Constant: limiter.Deny}, UntilNs: untilNs}
	}
	for i := range MaxOverrides - 1 {
		r.setOverrideLocked(deny(fmt.Sprint(i), 0))
	}
	if _, err := r.Override(deny("ends", 2000)); err != nil {
		t.Fatal(err)
	}
	_, err := r.Override(deny("more", 0))
	if err == nil || !strings.Contains(err.Error(), "100000 overrides by commands exist, the maximum") {
		t.Errorf("one too many: %v", err)
	}
	if found, err := r.Override(deny("7", 0)); !found || err != nil {
		t.Errorf("a known key: %v, %v", found, err)
	}
	nowNs = 2000
	if _, err := r.Override(deny("more", 0)); err != nil || r.NumOverrides() != MaxOverrides {
		t.Errorf("after the end of one: %v, %d", err, r.NumOverrides())
	}
	if keys, _ := r.Lookup([]byte("a")).NumOverrides(); keys != MaxOverrides {
		t.Errorf("%d keys are in force", keys)
	}
}

// TestOverridesOfDeletedLimits hold again when the limit is defined again.
func TestOverridesOfDeletedLimits(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	mustSet(t, r, definition("a", 5))
	for range 2 {
		o := KeyOverride{Limit: "a", Key: "k", Policy: Policy{Constant: limiter.Unlimited}}
		if _, err := r.Override(o); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Delete("a"); err != nil {
			t.Fatal(err)
		}
		mustSet(t, r, definition("a", 5))
		if n, _ := r.Lookup([]byte("a")).Named([]byte("k"), At(r.Now())); n.Constant != limiter.Unlimited {
			t.Errorf("decided by %+v", n)
		}
	}
	o := KeyOverride{Limit: "a", Key: "k", Removed: true}
	found, err := r.Override(o)
	if keys, _ := r.Lookup([]byte("a")).NumOverrides(); !found || err != nil || keys != 0 {
		t.Errorf("deleted %v, %v; %d are left", found, err, keys)
	}
}

// TestFilter has no false negatives, and few false positives for keys that differ in the middle, too.
func TestFilter(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"%d", "customer-%d-suffix", "%08d", "user:%d:of:acme:corporation"} {
		const keys = 5000
		f := newFilter(keys)
		for i := range keys {
			f.add(fmt.Appendf(nil, form, i))
		}
		wrong := 0
		for i := range 2 * keys {
			if has := f.mayHave(fmt.Appendf(nil, form, i)); i < keys && !has {
				t.Fatalf("%s: %d is lost", form, i)
			} else if i >= keys && has {
				wrong++
			}
		}
		if wrong > keys/4 {
			t.Errorf("%s: %d of %d keys are taken for others", form, wrong, keys)
		}
	}
}
