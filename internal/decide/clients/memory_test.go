package clients

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"cellserver/internal/wire/peer"
)

// evictable is a connection that counts how often it was evicted.
type evictable struct{ evicted int }

func (*evictable) Wake()    {}
func (*evictable) Kill()    {}
func (e *evictable) Evict() { e.evicted++ }

const kib = 1 << 10

// crowd returns clients that hold the given KiB in different kinds.
func crowd(r *Register, kibs ...int) (all []*Client) {
	for i, n := range kibs {
		c := New(peer.Peer{}, &evictable{}, t0)
		r.Add(c)
		c.Hold(Holding(i)%holdings, n*kib)
		all = append(all, c)
	}
	return all
}

func evicted(all []*Client) (text string) {
	for _, c := range all {
		text += fmt.Sprint(c.Conn.(*evictable).evicted)
	}
	return text
}

// TestLargestIsEvictedFirst: no more are evicted than needed, apart from evictShare.
func TestLargestIsEvictedFirst(t *testing.T) {
	for _, tt := range []struct {
		name    string
		holds   []int
		exempt  int // index of a client, or -1
		max     int64
		evicted string
		left    int64
	}{
		{"below the limit", []int{10, 30, 20}, -1, 63, "000", 63},
		{"no limit", []int{10, 30, 20}, -1, 0, "000", 63},
		{"the largest", []int{10, 30, 20}, -1, 62, "010", 32},
		{"two of them", []int{10, 30, 20}, -1, 31, "011", 11},
		{"exactly enough", []int{6, 30, 7}, -1, 16, "010", 15},
		{"all", []int{10, 30, 20}, -1, 1, "111", 0},
		{"not the exempt one", []int{10, 30, 20}, 1, 62, "001", 42},
		{"the exempt one counts", []int{10, 30, 20}, 1, 20, "101", 31},
		{"idle clients cost something", []int{0, 0, 5}, -1, 1, "111", 0},
	} {
		var r Register
		all := crowd(&r, tt.holds...)
		if tt.exempt >= 0 {
			all[tt.exempt].Change(func(i *Info) { i.NoEvict = true })
		}
		r.SetMaxMemory(tt.max * kib)
		if got := evicted(all); got != tt.evicted || r.Memory() != tt.left*kib || r.MaxMemory() != tt.max*kib {
			t.Errorf("%s: evicted %s, left %d KiB, want %s, %d KiB", tt.name, got, r.Memory()/kib, tt.evicted, tt.left)
		}
		for _, c := range all {
			r.Remove(c)
		}
		if r.Memory() != 0 {
			t.Errorf("%s: %d bytes without clients", tt.name, r.Memory())
		}
	}
}

// TestEvictionFollowsGrowth: growth and new clients evict, each client once.
func TestEvictionFollowsGrowth(t *testing.T) {
	var r Register
	told := 0
	r.OnEvict = func(_ *Client, bytes int) { told += bytes }
	r.SetMaxMemory(100 * kib)
	all := crowd(&r, 40, 30, 20) // 93 with their own
	all[1].Hold(Output, 12*kib)
	if evicted(all) != "010" || r.Memory() != 62*kib || told != 43*kib || r.Evicted() != 1 {
		t.Errorf("evicted %s, left %d KiB, told of %d KiB", evicted(all), r.Memory()/kib, told/kib)
	}
	all[1].Hold(Output, 1000*kib)
	all[1].Hold(Output, 0)
	all = append(all, crowd(&r, 36, 0)...)
	if evicted(all) != "01000" || r.Memory() != 100*kib {
		t.Errorf("at the limit: evicted %s, left %d KiB", evicted(all), r.Memory()/kib)
	}
	all = append(all, crowd(&r, 0)...)
	if evicted(all) != "110000" || r.Evicted() != 2 {
		t.Errorf("one more client: evicted %s, left %d KiB", evicted(all), r.Memory()/kib)
	}
	r.Remove(all[1])
	r.Remove(all[1])
	if r.Memory() != 60*kib {
		t.Errorf("an evicted client that has gone: left %d KiB", r.Memory()/kib)
	}
}

// TestGrowthDuringAPass: a client that grows during a pass is evicted by the next, instead of smaller ones.
func TestGrowthDuringAPass(t *testing.T) {
	var r Register
	all := crowd(&r, 0, 0, 60)
	var grows sync.WaitGroup
	r.OnEvict = func(c *Client, _ int) {
		if c == all[2] { // on another goroutine, which waits for the pass
			before := r.Memory()
			grows.Go(func() { all[1].Hold(Output, 80*kib) })
			for r.Memory() == before {
				runtime.Gosched()
			}
		}
	}
	r.SetMaxMemory(60 * kib)
	grows.Wait()
	if got := evicted(all); got != "011" || r.Memory() != kib {
		t.Errorf("evicted %s, left %d KiB", got, r.Memory()/kib)
	}
}

// TestExemptClients: while exempt clients alone exceed the limit, passes are rare.
func TestExemptClients(t *testing.T) {
	var r Register
	all := crowd(&r, 200)
	all[0].Change(func(i *Info) { i.NoEvict = true })
	r.SetMaxMemory(160 * kib)
	other := crowd(&r, 4)
	if evicted(other) != "0" {
		t.Error("a client was evicted for less than a pass frees")
	}
	other[0].Hold(Queue, 20*kib)
	if evicted(other) != "1" {
		t.Error("a client was not evicted for more than a pass frees")
	}
	all[0].Hold(Input, 0)
	other = crowd(&r, 100, 100)
	if evicted(other) != "10" && evicted(other) != "01" {
		t.Errorf("within the limit again: evicted %s", evicted(other))
	}
}

// TestHoldPublishesInSteps: small changes are not counted, and allocate nothing.
func TestHoldPublishesInSteps(t *testing.T) {
	var r Register
	c := crowd(&r, 0)[0]
	for _, step := range []struct{ bytes, want int }{
		{1023, 0}, {1024, 1024}, {2000, 1024}, {2048, 2048}, {1100, 2048}, {1024, 1024}, {1, 1024}, {0, 0},
	} {
		c.Hold(Input, step.bytes)
		if held, total := c.Memory(); held[Input] != step.want || total != ClientBytes+step.want || r.Memory() != int64(total) {
			t.Errorf("%d bytes: %d, %d in total, %d of all, want %d", step.bytes, held[Input], total, r.Memory(), step.want)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { c.Hold(Input, 4*kib); c.Hold(Input, 0) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestClientIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Client{}); size > 256 {
		t.Errorf("%d bytes", size)
	}
}
