package persist

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"testing"

	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
)

func manifests() []manifest {
	return []manifest{
		{logs: []fileEntry{{1, 1, -1}}},
		{snapshot: fileEntry{5, 0, 81234}, logs: []fileEntry{{5, 1000, 5000}, {6, 1017, -1}}},
		{snapshot: fileEntry{7, 0, 1}, logs: []fileEntry{{7, 1, 0}}, beside: []string{"A", "B"}},
	}
}

func TestManifestIsReadBack(t *testing.T) {
	for _, m := range manifests() {
		got, err := parseManifest(m.text())
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %+v, %v", m.text(), got, err)
		}
		for i := range m.text() {
			changed := m.text()
			changed[i] ^= 1
			if _, err := parseManifest(changed); !errors.Is(err, ErrDamaged) { // also in the version
				t.Errorf("%s: %v", changed, err)
			}
			if _, err := parseManifest(m.text()[:i]); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", m.text()[:i], err)
			}
		}
	}
}

// TestManifestOfFormat1: older formats are read, invalid ones are not.
func TestManifestOfFormat1(t *testing.T) {
	for _, m := range manifests() {
		if got, err := parseManifest(m.textOf(1)); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %+v, %v", m.textOf(1), got, err)
		}
		for _, version := range []int{-1, 0} {
			if got, err := parseManifest(m.textOf(version)); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %+v, %v", m.textOf(version), got, err)
			}
		}
	}
}

// TestManifestIsReplaced: any crash or error leaves the old or the new one.
func TestManifestIsReplaced(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all := manifests()
	seen := map[int]int{}
	for range 300 {
		d := disktest.New()
		if err := all[0].write(d); err != nil {
			t.Fatal(err)
		}
		at, failed := rng.IntN(6), errors.New("fails")
		var crashed *disktest.Dir
		d.Before = func(disktest.Op, string) error {
			if at--; at == 0 {
				crashed = d.Crash(rng)
				return failed
			}
			return nil
		}
		err := all[1].write(d)
		if failing := crashed != nil; failing != errors.Is(err, failed) {
			t.Fatalf("%v", err)
		}
		d.Before = nil
		if crashed == nil {
			crashed = d.Crash(rng)
		}
		for _, left := range []*disktest.Dir{crashed, d} {
			m, readErr := readManifest(left)
			switch {
			case readErr == nil && reflect.DeepEqual(m, all[0]) && err != nil:
				seen[0]++
			case readErr == nil && reflect.DeepEqual(m, all[1]):
				seen[1]++
			default:
				t.Fatalf("%+v is left, %v; written: %v", m, readErr, err)
			}
		}
		if err := all[2].write(d); err != nil { // whatever a failed one has left
			t.Fatal(err)
		}
	}
	if seen[0] < 10 || seen[1] < 10 {
		t.Errorf("seen: %v", seen)
	}
	if _, err := readManifest(disktest.New()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in an empty directory: %v", err)
	}
}

// TestNewerManifest: a later version's is known by its checksum alone.
func TestNewerManifest(t *testing.T) {
	text := disk.AppendSum([]byte("cellserver data, format 8\nof another kind\n"))
	if _, err := parseManifest(text); !errors.Is(err, ErrNewer) {
		t.Errorf("%v", err)
	}
	for i := range 8 * len(text) {
		changed := bytes.Clone(text)
		changed[i/8] ^= 1 << (i % 8)
		if _, err := parseManifest(changed); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", changed, err)
		}
	}
}
