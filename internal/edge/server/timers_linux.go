package server

import "container/heap"

// timers holds connections by deadline, earliest first. One whose deadline moves back, as an idle timeout
// does with each byte, keeps its place until that time; take then moves it.
type timers []*loopConn

func (t *timers) update(c *loopConn) {
	switch {
	case c.timer == 0:
		if c.dueNs != 0 {
			c.timerNs = c.dueNs
			heap.Push((*timerHeap)(t), c)
		}
	case c.dueNs != 0 && c.dueNs < c.timerNs:
		c.timerNs = c.dueNs
		heap.Fix((*timerHeap)(t), int(c.timer)-1)
	}
}

func (t *timers) remove(c *loopConn) {
	if c.timer != 0 {
		heap.Remove((*timerHeap)(t), int(c.timer)-1)
	}
}

// take removes and returns a connection that is due, or nil.
func (t *timers) take(nowNs int64) *loopConn {
	for len(*t) > 0 && (*t)[0].timerNs <= nowNs {
		c := (*t)[0]
		switch {
		case c.dueNs != 0 && c.dueNs > nowNs:
			c.timerNs = c.dueNs
			heap.Fix((*timerHeap)(t), 0)
		case c.dueNs == 0:
			t.remove(c)
		default:
			t.remove(c)
			return c
		}
	}
	return nil
}

// timerHeap orders by timerNs. loopConn.timer is the place in it, counted from 1.
type timerHeap []*loopConn

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].timerNs < h[j].timerNs }

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timer, h[j].timer = int32(i+1), int32(j+1)
}

func (h *timerHeap) Push(x any) {
	c := x.(*loopConn)
	*h = append(*h, c)
	c.timer = int32(len(*h))
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	c.timer = 0
	return c
}
