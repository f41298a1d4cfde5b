package xds_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"cellserver/internal/edge/xds/xdspb"
)

// drive is a Keep that fails, or hangs.
type drive struct {
	hangs chan struct{} // nil for one that does not

	mu    sync.Mutex
	fails bool
	kept  []string // versions
}

func (d *drive) Load() ([]byte, error) { return nil, nil }

func (d *drive) Save(text []byte) error {
	if d.hangs != nil {
		<-d.hangs
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails {
		return errors.New("no space left on device")
	}
	answer := &xdspb.DiscoveryResponse{}
	err := proto.Unmarshal(text, answer)
	d.kept = append(d.kept, answer.VersionInfo)
	return err
}

func (d *drive) set(fails bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = fails
}

func (d *drive) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.kept, " ")
}

// on returns a client with the drive, and its stream.
func (d *drive) on(t *testing.T) (*client, *stream) {
	t.Helper()
	server := serve(t, nil)
	config := server.configOf()
	config.Keep = d
	c := run(t, config)
	s := <-server.streams
	s.next()
	return c, s
}

const (
	notKept   = "not kept for another start"
	keptAgain = "kept again for another start"
)

func (c *client) logged(text string) int { return strings.Count(c.log.String(), text) }

// TestDiskThatFails: limits are taken and acknowledged at once all the same, and the log tells each change,
// and no more than once a minute what is still so.
func TestDiskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drive{fails: true}
		c, s := d.on(t)
		began := time.Now()
		for i := range 1000 {
			s.send(t, answer(t, strconv.Itoa(i), domain("a", 1)))
		}
		for range 1000 {
			s.next()
		}
		if took := time.Since(began); took > 100*time.Second {
			t.Errorf("it took %s", took)
		}
		if st := c.Status(); st.Version != "999" || st.Accepted != 1000 || st.Unkept != 1000 || c.logged(notKept) != 2 || c.logged(keptAgain) != 0 {
			t.Errorf("%+v, told %d times", st, c.logged(notKept))
		}
		d.set(false)
		for i := range 10 {
			s.send(t, answer(t, "kept-"+strconv.Itoa(i), domain("a", 1)))
			s.next()
		}
		if c.logged(notKept) != 2 || c.logged(keptAgain) != 1 || c.Status().Unkept != 1000 {
			t.Errorf("%+v: told %d times", c.Status(), c.logged(keptAgain))
		}
		d.set(true)
		s.send(t, answer(t, "x", domain("a", 1)))
		s.next()
		if c.logged(notKept) != 3 {
			t.Error("another failure is not told")
		}
	})
}

// TestDiskThatHangs delays each acknowledgement by five seconds. Once it takes what it has, it gets the
// latest.
func TestDiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drive{hangs: make(chan struct{})}
		c, s := d.on(t)
		began := time.Now()
		for i := range 5 {
			version := strconv.Itoa(i)
			s.send(t, answer(t, version, domain("a", uint32(i))))
			s.want(t, request{version, "nonce-" + version, ""})
			c.wantLimits(t, map[string]uint32{"a": uint32(i)})
		}
		if took := time.Since(began); took != 25*time.Second {
			t.Errorf("it took %s", took)
		}
		if c.logged(notKept) != 1 || c.logged("has not taken them within 5s") != 1 || c.Status().Unkept != 5 {
			t.Errorf("%+v: %s", c.Status(), c.log)
		}
		close(d.hangs)
		synctest.Wait()
		if got := d.all(); got != "0 4" || c.logged(keptAgain) != 1 {
			t.Errorf("kept are %s; %s", got, c.log)
		}
	})
}

// TestEndWhileSaving: Run ends after the disk has taken what was read, and acknowledges nothing meanwhile.
func TestEndWhileSaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drive{hangs: make(chan struct{})}
		c, s := d.on(t)
		s.send(t, answer(t, "1", domain("a", 1)))
		synctest.Wait()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.stop()
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("Run has ended, and the disk has not taken the limits")
		case q := <-s.requests:
			t.Errorf("told %v", q)
		default:
		}
		close(d.hangs)
		<-ended
		if d.all() != "1" || c.logged(notKept) != 0 {
			t.Errorf("kept are %s; %s", d.all(), c.log)
		}
	})
}
