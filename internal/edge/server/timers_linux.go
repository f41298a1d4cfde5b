package server

import "container/heap"

// timers holds connections by deadline, earliest first. One whose deadline moves back, as an idle timeout
// does with each byte, keeps its place until that time; take then moves it. As a heap.Interface it orders by
// timerNs; loopConn.timer is the place in it, counted from 1.
type timers []*loopConn

func (t *timers) update(c *loopConn) {
	switch {
	case c.timer == 0:
		if c.dueNs != 0 {
			c.timerNs = c.dueNs
			heap.Push(t, c)
		}
	case c.dueNs != 0 && c.dueNs < c.timerNs:
		c.timerNs = c.dueNs
		heap.Fix(t, int(c.timer)-1)
	}
}

func (t *timers) remove(c *loopConn) {
	if c.timer != 0 {
		heap.Remove(t, int(c.timer)-1)
	}
}

// take removes and returns a connection that is due, or nil.
func (t *timers) take(nowNs int64) *loopConn {
	for len(*t) > 0 && (*t)[0].timerNs <= nowNs {
		c := (*t)[0]
		switch {
		case c.dueNs != 0 && c.dueNs > nowNs:
			c.timerNs = c.dueNs
			heap.Fix(t, 0)
		case c.dueNs == 0:
			t.remove(c)
		default:
			t.remove(c)
			return c
		}
	}
	return nil
}

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].timerNs < t[j].timerNs }

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer, t[j].timer = int32(i+1), int32(j+1)
}

func (t *timers) Push(x any) {
	c := x.(*loopConn)
	*t = append(*t, c)
	c.timer = int32(len(*t))
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	c := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	c.timer = 0
	return c
}
