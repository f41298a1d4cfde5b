package limitsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

func config(change ...func(*Config)) Config {
	c := Config{Calendars: calendars(), Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	return c
}

func in(dir *disktest.Dir) func(*Config) { return func(c *Config) { c.Dir = dir } }

func repairing(c *Config) { c.Repair = true }

func keeperIn(dir *disktest.Dir, change ...func(*Config)) *keeper {
	c := config(append(change, in(dir))...)
	return newKeeper(&c)
}

func definition(name string, capacity int64) namedlimit.Definition {
	return namedlimit.Definition{Name: name, Policy: byRules(window(capacity, 5, 60), window(100, 100, 86400)), Near: namedlimit.DefaultNear}
}

// variety has each kind of a definition by a command.
func variety() []namedlimit.Definition {
	of := func(name string, p namedlimit.Policy, shadow bool) namedlimit.Definition {
		return namedlimit.Definition{Name: name, Policy: p, Shadow: shadow, Near: namedlimit.DefaultNear}
	}
	return []namedlimit.Definition{
		of("a", byRules(window(20, 10, 1)), false),
		of("b", byRules(
			namedlimit.Rule{Algorithm: namedlimit.TokenBucket, Capacity: 1, Count: 2, PeriodSec: 3},
			namedlimit.Rule{Algorithm: namedlimit.FixedWindow, Capacity: 1, PeriodSec: 3},
			namedlimit.Rule{Algorithm: namedlimit.SlidingWindow, Capacity: 1, PeriodSec: 3},
			namedlimit.Rule{Algorithm: namedlimit.ApproximateWindow, Capacity: 1, PeriodSec: 3},
			namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: 1, Calendar: calendar.Spec{Every: calendar.Hour, Epoch: true}},
			namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: 1, Calendar: calendar.Spec{Every: calendar.Day, Zone: "Europe/Berlin", Start: 360}},
		), true),
		of("c", namedlimit.Policy{Constant: limiter.Deny}, false),
		of("d", namedlimit.Policy{Constant: limiter.Unlimited}, true),
		of("e", namedlimit.Policy{Plan: "gold"}, false),
	}
}

const varietyText = `cellserver limits, format 2
a FUNNEL 20 10 1
b TOKENBUCKET 1 2 3 FIXEDWINDOW 1 3 SLIDINGWINDOW 1 3 SLIDINGWINDOW 1 3 APPROX QUOTA 1 HOUR EPOCH QUOTA 1 DAY TZ Europe/Berlin START 06:00 shadow
c DENY
d UNLIMITED shadow
e PLAN gold
`

// sealed appends the checksum to a text.
func sealed(text string) []byte {
	return fmt.Appendf(nil, "%scrc32c %08x\n", text, disk.Checksum([]byte(text)))
}

func TestKeptText(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	if err := keeperIn(dir).Keep(variety()); err != nil {
		t.Fatal(err)
	}
	if got := string(dir.Contents(KeptName)); got != string(sealed(varietyText)) {
		t.Errorf("kept as %s", got)
	}
	if got, err := keeperIn(dir).Load(); err != nil || !reflect.DeepEqual(got, variety()) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestKeptFormat1: files of earlier versions are read, and written in the present format.
func TestKeptFormat1(t *testing.T) {
	t.Parallel()
	const old = "cellserver limits, format 1\na 5 5 60 100 100 86400\nb 1 2 3 shadow\n"
	want := []namedlimit.Definition{definition("a", 5), {Name: "b", Policy: byRules(window(1, 2, 3)), Shadow: true, Near: namedlimit.DefaultNear}}
	dir := disktest.New()
	dir.SetContents(KeptName, sealed(old))
	k := keeperIn(dir)
	got, err := k.Load()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := k.Keep(got); err != nil || !strings.HasPrefix(string(dir.Contents(KeptName)), "cellserver limits, format 2\na FUNNEL 5 5 60 FUNNEL 100 100 86400\nb FUNNEL 1 2 3 shadow\n") {
		t.Errorf("%v, kept as %s", err, dir.Contents(KeptName))
	}
	for _, bad := range []string{"a 5 5", "a", "a 5 5 60 5 5 60", "a 05 5 60", "a FUNNEL 5 5 60", "a 5 5 60 SHADOW", "a 0 5 60"} {
		if got, err := parseKept(sealed("cellserver limits, format 1\n" + bad + "\n")); !errors.Is(err, persist.ErrDamaged) {
			t.Errorf("%s: got %+v, %v", bad, got, err)
		}
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	if err := keeperIn(dir).Keep(variety()); err != nil {
		t.Fatal(err)
	}
	good := string(dir.Contents(KeptName))
	if n, size, err := CheckKept(dir); n != len(variety()) || size != int64(len(good)) || err != nil {
		t.Errorf("checked: %d, %d, %v", n, size, err)
	}
	if _, _, err := CheckKept(disktest.New()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	newer := string(sealed("cellserver limits, format 4\nanything\n"))
	bads := []string{strings.Replace(good, "format 2", "format 3", 1), "", "\n\n", good[:len(good)-1], good + "\n", strings.Replace(good, "a FUNNEL", "b FUNNEL", 1), strings.Replace(good, "20 ", "", 1), newer}
	for _, line := range []string{
		"a DENY\na DENY", "a", "a b", "a deny", "a DENY ", "a  DENY", "a DENY SHADOW", "a FUNNEL 1 1 1 NAME x", "a FUNNEL 01 1 1",
		"a b DENY", "ä DENY", "a PLAN ä", "a PLAN", "a SLIDINGWINDOW 4097 1", "a FUNNEL 1 1 1 FUNNEL 2 2 1", "a QUOTA 1 DAY TZ UTC", "",
	} {
		bads = append(bads, string(sealed("cellserver limits, format 2\n"+line+"\n")))
	}
	for _, bad := range bads {
		dir.SetContents(KeptName, []byte(bad))
		wanted := persist.ErrDamaged
		if bad == newer {
			wanted = persist.ErrNewer
		}
		_, _, checkErr := CheckKept(dir)
		_, err := keeperIn(dir).Load()
		if !errors.Is(err, wanted) || !errors.Is(checkErr, wanted) || strings.Contains(err.Error(), "--data-recover") != (bad != newer) {
			t.Errorf("%q: %v, and checked %v", bad, err, checkErr)
		}
		if got, err := keeperIn(dir, repairing).Load(); bad == newer {
			if !errors.Is(err, persist.ErrNewer) {
				t.Errorf("%q: %v", bad, err)
			}
		} else if err != nil || len(got) > 0 || dir.Contents(KeptName) != nil {
			t.Errorf("%q: %v, and the file is still there", bad, err)
		}
	}
	if string(dir.Contents("damaged-3-"+KeptName)) != "\n\n" {
		t.Error("the damaged file was not set aside")
	}
}

// TestUnknownZone: a file is not damaged because this machine lacks a time zone.
func TestUnknownZone(t *testing.T) {
	t.Parallel()
	quota := byRules(namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: 1, Calendar: calendar.Spec{Every: calendar.Day, Zone: "Mars/Olympus"}})
	dir := disktest.New()
	k := keeperIn(dir, repairing)
	if err := k.Rewrite([]namedlimit.Definition{{Name: "a", Policy: quota}}, each(namedlimit.KeyOverride{Limit: "a", Key: "b", Policy: quota})); err != nil {
		t.Fatal(err)
	}
	const unknown = "unknown time zone 'Mars/Olympus'; use an IANA name, such as Europe/Berlin"
	if _, err := k.Load(); err == nil || err.Error() != "LIMITS: the limit a: "+unknown {
		t.Error(err)
	}
	if _, err := k.LoadOverrides(); err == nil || err.Error() != "OVERRIDES: "+unknown {
		t.Error(err)
	}
	n, _, err := CheckKept(dir)
	overrides, _, _, overridesErr := CheckOverrides(dir)
	if n != 1 || overrides != 1 || err != nil || overridesErr != nil {
		t.Errorf("checked %d, %d, %v, %v", n, overrides, err, overridesErr)
	}
}

// TestKept: definitions survive a crash once Keep has returned; an earlier crash leaves the old ones.
func TestKept(t *testing.T) {
	t.Parallel()
	before, next := []namedlimit.Definition{definition("a", 5)}, variety()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		dir := disktest.New()
		k := keeperIn(dir)
		must(t, k.Keep(before))
		var crashed *disktest.Dir
		steps := rng.IntN(8)
		dir.Before = func(disktest.Op, string) error {
			if steps--; steps == 0 {
				crashed = dir.Crash(rng)
			}
			return nil
		}
		must(t, k.Keep(next))
		done := crashed == nil
		if done {
			crashed = dir.Crash(rng)
		}
		got, err := keeperIn(crashed).Load()
		if err != nil || !reflect.DeepEqual(got, next) && (done || !reflect.DeepEqual(got, before)) {
			t.Errorf("seed %d: %v: %+v", seed, err, got)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzParseKept(f *testing.F) {
	f.Add(keptText(variety()))
	f.Add(keptText(nil))
	f.Add(keptText(withOptions()))
	f.Add(sealed("cellserver limits, format 1\na 5 5 60\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseKept(text)
		if err != nil {
			return
		}
		written := keptText(all)
		if strings.HasPrefix(string(text), "cellserver limits, format 2\n") && string(written) != string(text) {
			t.Errorf("%q is read as %+v", text, all)
		}
		if again, err := parseKept(written); err != nil || !reflect.DeepEqual(again, all) {
			t.Errorf("%q is read as %+v, %v", written, again, err)
		}
	})
}
