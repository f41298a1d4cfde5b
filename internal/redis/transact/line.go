package transact

import (
	"context"
	"slices"
	"sync"
	"time"

	"cellserver/internal/store"
)

// line is the members by key: those of transactions under way, and those that wait. A member waits for the
// earlier ones that share a key with it; then all that wait, and share keys directly or by others, are one
// joint.
type line struct {
	mu      sync.Mutex          // rank 60: guards all below
	busy    map[string]struct{} // keys of transactions under way
	awaited map[string]int      // number of waiting members by key
	waiting []*member           // in order of arrival
}

func newLine() *line { return &line{busy: map[string]struct{}{}, awaited: map[string]int{}} }

// enter adds a member. It returns its joint if there is nobody to wait for.
func (l *line) enter(m *member) (begun []*joint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(m.Keys, func(k store.Key) bool { return l.isBusyLocked(k) || l.awaited[string(k.Name)] > 0 }) {
		l.awaitLocked(m)
		l.waiting = append(l.waiting, m)
		return nil
	}
	j := &joint{members: []*member{m}, keys: m.Keys}
	l.beginLocked(j)
	return []*joint{j}
}

// left returns the rest of a member's time.
func (l *line) left(m *member, timeout time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := m.entered.Add(2 * timeout)
	if j := m.joint; j != nil && j.began.Add(timeout).Before(until) {
		until = j.began.Add(timeout)
	}
	return time.Until(until)
}

// endLast ends the attempt of a joint for its last member, who awaits the store's word. It returns false for
// others.
func (l *line) endLast(m *member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.joint == nil || m.joint.present > 1 {
		return false
	}
	m.joint.cancel()
	return true
}

// leave takes out a member whose caller does not wait any more. It returns joints of those who have waited
// for it only.
func (l *line) leave(m *member) (begun []*joint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.left {
		return nil
	}
	m.left = true
	close(m.gone)
	if j := m.joint; j != nil {
		if j.present--; j.present == 0 {
			j.cancel()
		}
		return nil
	}
	m.stage = lost
	l.waiting = slices.DeleteFunc(l.waiting, func(other *member) bool { return other == m })
	l.calledLocked(m)
	return l.formLocked()
}

// end ends a joint, and returns the next ones.
func (l *line) end(j *joint) (begun []*joint) {
	j.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range j.keys {
		delete(l.busy, string(j.keys[i].Name))
	}
	again := slices.DeleteFunc(j.again, func(m *member) bool { return m.left })
	for _, m := range again {
		m.joint, m.Alone = nil, true
		l.awaitLocked(m)
	}
	l.waiting = append(again, l.waiting...)
	return l.formLocked()
}

func (l *line) isBusyLocked(k store.Key) bool {
	_, busy := l.busy[string(k.Name)]
	return busy
}

func (l *line) awaitLocked(m *member) {
	for i := range m.Keys {
		l.awaited[string(m.Keys[i].Name)]++
	}
}

func (l *line) calledLocked(m *member) {
	for i := range m.Keys {
		if l.awaited[string(m.Keys[i].Name)]--; l.awaited[string(m.Keys[i].Name)] == 0 {
			delete(l.awaited, string(m.Keys[i].Name))
		}
	}
}

// beginLocked begins a joint.
func (l *line) beginLocked(j *joint) {
	j.ctx, j.cancel = context.WithCancel(context.Background())
	j.began = time.Now()
	for i := range j.keys {
		l.busy[string(j.keys[i].Name)] = struct{}{}
	}
	for _, m := range j.members {
		m.joint = j
	}
	j.present = len(j.members)
}

// formLocked begins joints of all who need not wait any longer.
func (l *line) formLocked() []*joint {
	f, passed := forming{of: map[string]*joint{}}, map[string]struct{}{} // keys of earlier members that wait
	l.waiting = slices.DeleteFunc(l.waiting, func(m *member) bool {
		waits := slices.ContainsFunc(m.Keys, func(k store.Key) bool {
			_, is := passed[string(k.Name)]
			return is || l.isBusyLocked(k)
		})
		if !waits && f.place(m) {
			l.calledLocked(m)
			return true
		}
		for i := range m.Keys {
			passed[string(m.Keys[i].Name)] = struct{}{}
		}
		return false
	})
	for _, j := range f.all {
		l.beginLocked(j)
	}
	return f.all
}

// forming is joints before their beginning.
type forming struct {
	all []*joint
	of  map[string]*joint // by key
}

// place adds a member to the joints with which it shares keys, which become one. It returns false if there is
// no room for it.
func (f *forming) place(m *member) bool {
	into, others := (*joint)(nil), []*joint(nil)
	for i := range m.Keys {
		switch j := f.of[string(m.Keys[i].Name)]; {
		case j == nil || j == into || slices.Contains(others, j):
		case into == nil:
			into = j
		default:
			others = append(others, j)
		}
	}
	if into == nil {
		into = &joint{}
		f.all = append(f.all, into)
	} else if !into.mayTake(m, others) {
		return false
	}
	for _, j := range others {
		f.add(into, j.members, j.keys)
		f.all = slices.DeleteFunc(f.all, func(other *joint) bool { return other == j })
	}
	f.add(into, []*member{m}, m.Keys)
	return true
}

func (f *forming) add(into *joint, members []*member, keys []store.Key) {
	into.members, into.keys = append(into.members, members...), append(into.keys, keys...)
	for i := range keys {
		f.of[string(keys[i].Name)] = into
	}
}
