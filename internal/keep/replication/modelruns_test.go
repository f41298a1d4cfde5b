package replication

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/test/racetest"
)

// explore runs all sequences of steps up to a depth, and calls end after each of them.
func explore(_ *testing.T, depth int, begin func() *model, steps []step, end func(m *model)) (runs int) {
	replay := func(path []int) *model {
		m := begin()
		for _, i := range path {
			m.path = append(m.path, steps[i].name)
			steps[i].do(m)
			m.check()
		}
		return m
	}
	var walk func(path []int)
	walk = func(path []int) {
		m := replay(path)
		runs++
		var next []int
		if len(path) < depth {
			for i, s := range steps {
				if s.can(m) {
					next = append(next, i)
				}
			}
		}
		end(m)
		m.end()
		for _, i := range next {
			walk(append(path, i))
		}
	}
	walk(nil)
	return runs
}

// bubble runs a test of the model with time of its own.
func bubble(t *testing.T, test func(t *testing.T) (runs int)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { t.Log(test(t), "sequences") })
}

// TestModelOfCrashes: wherever a leader crashes, its replica leads with what it has applied, and forgives
// what was charged since.
func TestModelOfCrashes(t *testing.T) {
	bubble(t, func(t *testing.T) int {
		return explore(t, depth(t, 7), func() *model { return newModel(t, -time.Hour, 0) }, []step{chargeA, round, sends, applies, wait}, func(m *model) {
			for _, s := range []step{crash, promote, chargeB} {
				m.path = append(m.path, s.name)
				s.do(m)
				m.check()
			}
		})
	})
}

// TestModelOfPartitions: a leader that is cut off goes on charging, and later follows the new one, which is
// not changed by that.
func TestModelOfPartitions(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			bubble(t, func(t *testing.T) int {
				return explore(t, depth(t, 6), func() *model { return newModel(t, skew, 0) },
					[]step{chargeA, round, sends, applies, cut, promote, chargeB, roundB, comeBack}, func(*model) {})
			})
		})
	}
}

// TestModelOfPlannedChanges: a planned change that is not disturbed forgives nothing, and whatever happens,
// two servers that reach each other do not both charge after it.
func TestModelOfPlannedChanges(t *testing.T) {
	for _, isOld := range []bool{false, true} {
		begin := func(t *testing.T) *model {
			m := newModel(t, time.Minute, 0)
			m.isOld = isOld
			chargeA.do(m)
			return m
		}
		t.Run(fmt.Sprintf("disturbed, older leader %t", isOld), func(t *testing.T) {
			bubble(t, func(t *testing.T) int {
				return explore(t, depth(t, 5), func() *model { return begin(t) },
					[]step{chargeA, round, sends, applies, handOver, cut, drop, pass}, (*model).endChange)
			})
		})
		t.Run(fmt.Sprintf("undisturbed, older leader %t", isOld), func(t *testing.T) {
			bubble(t, func(t *testing.T) int {
				return explore(t, depth(t, 7), func() *model {
					m := begin(t)
					m.path = append(m.path, handOver.name)
					handOver.do(m)
					m.check()
					return m
				}, []step{chargeA, round, sends, applies}, (*model).endChange)
			})
		})
	}
}

// endChange has a planned change end, if one has begun.
func (m *model) endChange() {
	if !m.handed {
		return
	}
	m.sleep(4 * time.Second)
	m.a.node.lookAtOthers(m.t.Context())
	m.check()
	counts := m.b.node.Status().Counts
	if m.branch < 0 { // it goes on following
		if _, ok := m.a.charge(1); !ok || counts.HandoverFailures != 1 || m.isApart.Load() || isWhole(m.path) {
			m.fail("b does not lead: a charges: %t; %+v", ok, counts)
		}
		return
	}
	switch {
	case counts.Handovers+counts.HandoverTimeouts != 1 && m.wasLinked:
		m.fail("b counts %+v", counts)
	case counts.Handovers == 1 && m.branch != m.charged:
		m.fail("b leads with %d units, of %d", m.branch, m.charged)
	case counts.Handovers == 0 && isWhole(m.path):
		m.fail("the change has taken too long: %+v", counts)
	}
	if m.isApart.Load() || !m.wasLinked { // as after a partition
		comeBack.do(m)
		return
	}
	if _, ok := m.a.charge(1); ok {
		m.fail("both charge")
	}
	if m.a.node.role.leader != m.b.at {
		m.fail("a does not follow")
	}
	m.followNew()
}

// isWhole reports whether a path has all steps of a planned change, in order and in time.
func isWhole(path []string) bool {
	want := []string{handOver.name, round.name, sends.name, applies.name, sends.name}
	for _, name := range path {
		if name == pass.name || name == cut.name || name == drop.name {
			return false
		}
		if len(want) > 0 && name == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// TestModelOfMinReplicas: with a minimum of replicas and a lag below the time after which a leader is called
// down, an old and a new leader never both charge.
func TestModelOfMinReplicas(t *testing.T) {
	bubble(t, func(t *testing.T) int {
		return explore(t, depth(t, 9), func() *model { return newModel(t, time.Hour, 1) },
			[]step{sends, applies, silence, pass, promoteInTime}, func(m *model) {
				before := m.charged
				if chargeA.do(m); m.branch >= 0 && m.charged > before {
					m.fail("both charge")
				} else if len(m.path) == 0 && m.charged == before {
					m.fail("a does not charge")
				}
			})
	})
}

func depth(t *testing.T, most int) int {
	if racetest.OmitsLong() {
		return most - 2
	}
	t.Helper()
	return most
}
