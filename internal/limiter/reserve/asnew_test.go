package reserve

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/test/racetest"
)

// TestExpiresWhenAsNew: a key expires once no reservation is open and the funnel is empty, however it is read
// or settled.
func TestExpiresWhenAsNew(t *testing.T) {
	racetest.SkipAlone(t)
	t.Parallel()
	early, late := 0, 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		l := randomLedger(rng, 1+rng.IntN(12))
		for range rng.IntN(4) { // requests, commits and returns in between
			nowNs := l.firstNs + rng.Int64N(5*sec)
			if l.Settle(nowNs); l.Len() == 0 {
				break
			}
			switch rng.IntN(3) {
			case 0:
				l.SetTAT(nowNs, funnel.After(max(nowNs, l.tatNs), uint64(rng.Int64N(60*sec))))
			case 1:
				l.Commit(nowNs, l.at(rng.IntN(l.Len())).id(), rng.Int64N(12))
			default:
				l.SetTAT(nowNs, funnel.GiveBack(l.tatNs, nowNs, uint64(rng.Int64N(sec))))
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
			t.Fatalf("seed %d: not valid with its expiry", seed)
		}
		for range 20 {
			atNs := expiresNs + rng.Int64N(20*sec) - 15*sec
			if rng.IntN(4) == 0 {
				atNs = expiresNs + rng.Int64N(3) - 1
			}
			seen, _ := Open(bytes.Clone(payload))
			gotNs := seen.TATAt(atNs)
			if !bytes.Equal(seen.b, payload) {
				t.Fatalf("seed %d: TATAt changed the payload", seed)
			}
			if seen.Settle(atNs); gotNs != max(seen.tatNs, atNs) {
				t.Fatalf("seed %d: the TAT is %d ns more than when all is settled", seed, gotNs-max(seen.tatNs, atNs))
			}
			if asNew := seen.Len() == 0 && seen.tatNs <= atNs; asNew != (expiresNs <= atNs) {
				t.Fatalf("seed %d: as new is %t %d ns after it expires", seed, asNew, atNs-expiresNs)
			}
			if _, again := seen.Close(); seen.Len() > 0 && again != expiresNs {
				t.Fatalf("seed %d: settled, it expires %d ns later", seed, again-expiresNs)
			}
		}
	}
	if early < 50 || late < 50 {
		t.Errorf("%d expired before the TAT, %d after the last reservation, want at least 50", early, late)
	}
}
