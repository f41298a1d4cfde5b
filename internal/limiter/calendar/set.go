package calendar

import (
	"errors"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// slots bounds the calendars of a Set; a power of two.
const (
	slotBits = 10
	slots    = 1 << slotBits
)

// Set finds calendars. It holds at most 1,024: a new one may replace another, which then is made again, at
// its present window.
type Set struct {
	wall  *Wall
	load  func(name string) (*time.Location, error)
	seed  maphash.Seed // random, so that no client can choose names that replace each other
	table [slots]atomic.Pointer[Calendar]
	zones sync.Map // *time.Location by name; those that exist, several hundred
}

// NewSet returns an empty Set by a wall clock; load returns the zone of an IANA name.
func NewSet(w *Wall, load func(name string) (*time.Location, error)) *Set {
	return &Set{wall: w, load: load, seed: maphash.MakeSeed()}
}

// Of returns the calendar of a Spec, the same for equal ones while it is held. An error is the Spec's or the
// zone's.
func (s *Set) Of(spec Spec) (*Calendar, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	spec = spec.Normal()
	slot := s.slot(spec.Every, []byte(spec.Zone), spec.Start, spec.Epoch)
	present := slot.Load()
	if present != nil && present.spec == spec {
		return present, nil
	}
	location, err := s.location(spec.Zone)
	if err != nil {
		return nil, err
	}
	for made := New(spec, location, s.wall); ; present = slot.Load() {
		if present != nil && present.spec == spec {
			return present, nil // another goroutine's
		}
		if slot.CompareAndSwap(present, made) {
			return made, nil
		}
	}
}

// Find is Of for the words of a call: the zone as the client wrote it, empty for none. It allocates nothing
// for a calendar that is held.
func (s *Set) Find(e Every, zone []byte, start Start, epoch bool) (*Calendar, error) {
	if string(zone) == utc {
		zone = nil
	}
	if c := s.slot(e, zone, start, epoch).Load(); c != nil {
		if is := &c.spec; is.Every == e && is.Start == start && is.Epoch == epoch && is.Zone == string(zone) {
			return c, nil
		}
	}
	return s.Of(Spec{Every: e, Epoch: epoch, Zone: string(zone), Start: start})
}

func (s *Set) slot(e Every, zone []byte, start Start, epoch bool) *atomic.Pointer[Calendar] {
	rest := uint64(start)<<16 | uint64(e)<<8
	if epoch {
		rest++
	}
	const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio, which spreads into the upper bits
	return &s.table[(maphash.Bytes(s.seed, zone)^rest)*odd>>(64-slotBits)]
}

// maxZoneBytes exceeds the longest IANA name.
const maxZoneBytes = 64

// location returns the zone of a name, nil for UTC.
func (s *Set) location(name string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	if known, ok := s.zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	if isZoneName(name) {
		if location, err := s.load(name); err == nil {
			s.zones.Store(strings.Clone(name), location)
			return location, nil
		}
	}
	quote := quoted([]byte(name[:min(len(name), mostQuoted+1)]))
	return nil, errors.New("unknown time zone " + quote + "; use an IANA name, such as Europe/Berlin")
}

// isZoneName refuses paths, the machine's own zone, and the files whose clocks count leap seconds.
func isZoneName(name string) bool {
	if len(name) > maxZoneBytes || name == "Local" || name == "localtime" || strings.HasPrefix(name, "right/") {
		return false
	}
	for i := range len(name) {
		switch b := name[i]; {
		case 'a' <= b|0x20 && b|0x20 <= 'z', '0' <= b && b <= '9', strings.IndexByte("_+-/", b) >= 0:
		default:
			return false
		}
	}
	return !strings.HasPrefix(name, "/")
}
