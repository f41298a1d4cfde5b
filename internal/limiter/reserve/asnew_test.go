package reserve

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/test/racetest"
)

// TestExpiresWhenAsNew: a key expires once no reservation is open and the funnel is empty, whoever looks at
// whatever time, and settling does not change that.
func TestExpiresWhenAsNew(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	early, late := 0, 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		l := randomLedger(rng, 1+rng.IntN(12))
		for range rng.IntN(4) { // others request, commit and give back in between
			nowNs := l.firstNs + rng.Int64N(5*sec)
			if l.Settle(nowNs); l.Len() == 0 {
				break
			}
			switch rng.IntN(3) {
			case 0:
				l.SetTAT(nowNs, funnel.After(max(nowNs, l.TAT()), uint64(rng.Int64N(60*sec))))
			case 1:
				l.Commit(nowNs, l.at(rng.IntN(l.Len())).id(), rng.Int64N(12))
			default:
				l.SetTAT(nowNs, funnel.GiveBack(l.TAT(), nowNs, uint64(rng.Int64N(sec))))
			}
		}
		if l.Len() == 0 {
			continue
		}
		payload, expiresNs := l.Close()
		if latestNs := max(l.tatNs, l.lastNs); expiresNs > latestNs {
			t.Fatalf("seed %d: it expires %d ns after its TAT and its reservations", seed, expiresNs-latestNs)
		} else if expiresNs < latestNs {
			early++
		}
		if expiresNs > l.lastNs {
			late++
		}
		if !Valid(payload, expiresNs) || AsNewNs(payload) != expiresNs {
			t.Fatalf("seed %d: not valid at the time at which it expires", seed)
		}
		for range 20 {
			atNs := expiresNs + rng.Int64N(20*sec) - 15*sec
			if rng.IntN(4) == 0 {
				atNs = expiresNs + rng.Int64N(3) - 1
			}
			seen, _ := Open(bytes.Clone(payload))
			gotNs := seen.TATAt(atNs)
			if !bytes.Equal(seen.b, payload) {
				t.Fatalf("seed %d: who asks for the TAT has changed something", seed)
			}
			if seen.Settle(atNs); gotNs != max(seen.TAT(), atNs) {
				t.Fatalf("seed %d: the TAT is %d ns more than when all is settled", seed, gotNs-max(seen.TAT(), atNs))
			}
			if asNew := seen.Len() == 0 && seen.TAT() <= atNs; asNew != (expiresNs <= atNs) {
				t.Fatalf("seed %d: as new is %t %d ns after it expires", seed, asNew, atNs-expiresNs)
			}
			if _, again := seen.Close(); seen.Len() > 0 && again != expiresNs {
				t.Fatalf("seed %d: settled, it expires %d ns later", seed, again-expiresNs)
			}
		}
	}
	if early < 100 || late < 100 {
		t.Errorf("%d expired before the TAT, and %d after the last reservation: too few to tell", early, late)
	}
}
