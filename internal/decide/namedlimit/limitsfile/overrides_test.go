package limitsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/limiter"
)

func each(all ...namedlimit.KeyOverride) iter.Seq[namedlimit.KeyOverride] { return slices.Values(all) }

// overriding applies changes as a registry does.
type overriding struct {
	*keeper
	all map[overriddenKey]namedlimit.KeyOverride
}

func overridingIn(dir *disktest.Dir) *overriding {
	return &overriding{keeperIn(dir), map[overriddenKey]namedlimit.KeyOverride{}}
}

// change makes a change, unless it cannot be kept.
func (o *overriding) change(c namedlimit.KeyOverride) error {
	next := maps.Clone(o.all)
	if c.Removed {
		delete(next, overriddenKey{c.Limit, c.Key})
	} else {
		next[overriddenKey{c.Limit, c.Key}] = c
	}
	err := o.KeepOverride(c, len(next), maps.Values(next))
	if err == nil {
		o.all = next
	}
	return err
}

func (o *overriding) sorted() []namedlimit.KeyOverride {
	return (&keptOverrides{all: o.all}).sorted()
}

func set(key string, capacity int64) namedlimit.KeyOverride {
	return namedlimit.KeyOverride{Limit: "api", Key: key, Policy: byRules(window(capacity, 10, 1))}
}

func removed(key string) namedlimit.KeyOverride {
	return namedlimit.KeyOverride{Limit: "api", Key: key, Removed: true}
}

func loadedFrom(t *testing.T, dir *disktest.Dir) []namedlimit.KeyOverride {
	t.Helper()
	got, err := keeperIn(dir).LoadOverrides()
	if err != nil {
		t.Fatalf("%v, of %q", err, dir.Contents(OverridesName))
	}
	return got
}

func same(a, b []namedlimit.KeyOverride) bool {
	return slices.EqualFunc(a, b, func(a, b namedlimit.KeyOverride) bool { return reflect.DeepEqual(a, b) })
}

// keptChanges are some changes in order.
func keptChanges() []namedlimit.KeyOverride {
	return []namedlimit.KeyOverride{
		set("acme", 20),
		{Limit: "login", Key: "a \"key\"\n\xff\u2028 ", UntilNs: 1767225600000000000, Policy: namedlimit.Policy{Plan: "gold"}},
		{Limit: "api", Key: "", Policy: namedlimit.Policy{Constant: limiter.Deny}},
		{Limit: "api", Key: "c", UntilNs: -1, Policy: namedlimit.Policy{Constant: limiter.Unlimited}},
		{Limit: "api", Key: "d", Policy: variety()[1].Policy},
		removed("acme"),
		removed("nosuch"),
		set("c", 7),
	}
}

const overridesText = `cellserver overrides, format 1
api "acme" - FUNNEL 20 10 1
login "a \"key\"\n\xff\u2028 " 1767225600000000000 PLAN gold
api "" - DENY
api "c" -1 UNLIMITED
api "d" - TOKENBUCKET 1 2 3 FIXEDWINDOW 1 3 SLIDINGWINDOW 1 3 SLIDINGWINDOW 1 3 APPROX QUOTA 1 HOUR EPOCH QUOTA 1 DAY TZ Europe/Berlin START 06:00
api "acme" - DELETE
api "nosuch" - DELETE
api "c" - FUNNEL 7 10 1
`

// summed appends each line's checksum, but for the header's.
func summed(text string) []byte {
	header, lines, _ := strings.Cut(text, "\n")
	b := []byte(header + "\n")
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		b = fmt.Appendf(b, "%s crc32c %08x\n", line, disk.Checksum([]byte(line)))
	}
	return b
}

func TestOverridesText(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	o := overridingIn(dir)
	if got := loadedFrom(t, dir); len(got) != 0 {
		t.Errorf("without a file: %+v", got)
	}
	for _, c := range keptChanges() {
		must(t, o.change(c))
		if got := loadedFrom(t, dir); !same(got, o.sorted()) {
			t.Errorf("got %+v, want %+v", got, o.sorted())
		}
	}
	if got := string(dir.Contents(OverridesName)); got != string(summed(overridesText)) {
		t.Errorf("kept as %s", got)
	}
	if n, size, _, err := CheckOverrides(dir); n != 4 || size != int64(len(summed(overridesText))) || err != nil {
		t.Errorf("checked: %d, %d, %v", n, size, err)
	}
	after := overridingIn(dir)
	after.all = o.all
	must(t, after.change(removed("d"))) // the first one writes all anew
	if got := strings.Count(string(dir.Contents(OverridesName)), "\n"); got != 4 {
		t.Errorf("%d lines after a restart", got)
	}
}

// TestOverridesTornTail: any part of the last line may be missing, or be zeros.
func TestOverridesTornTail(t *testing.T) {
	t.Parallel()
	text := string(summed(overridesText))
	last := strings.LastIndex(text[:len(text)-1], "\n") + 1
	var log strings.Builder
	for cut := last; cut < len(text); cut++ {
		rest := len(text) - cut
		for _, tail := range []string{text[last:cut], text[last:cut] + strings.Repeat("\x00", rest), text[last:cut] + strings.Repeat("\x00", rest-1) + "\n"} {
			if tail == text[last:] {
				continue
			}
			dir := disktest.New()
			dir.SetContents(OverridesName, []byte(text[:last]+tail))
			log.Reset()
			c := config(in(dir), func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			got, err := newKeeper(&c).LoadOverrides()
			if err != nil || len(got) != 4 || got[1].Policy.Constant != limiter.Unlimited {
				t.Fatalf("%q: %+v, %v", tail, got, err)
			}
			said := fmt.Sprintf("from_byte=%d bytes=%d", len(dir.Contents(OverridesName))-len(tail), len(tail))
			if warned := strings.Contains(log.String(), said); warned != (tail != "") || strings.Contains(log.String(), "complete") {
				t.Errorf("%q: logged %q", tail, log.String())
			}
		}
	}
}

// TestOverridesBitFlips: every flipped bit is found by a checksum, also in the header's version. The last
// line is dropped with it, and told apart from a torn write.
func TestOverridesBitFlips(t *testing.T) {
	t.Parallel()
	good := summed(overridesText)
	last := strings.LastIndex(string(good[:len(good)-1]), "\n") + 1
	dir := disktest.New()
	dir.SetContents(OverridesName, good[:last])
	before := loadedFrom(t, dir)
	for i := range len(good) * 8 {
		b := slices.Clone(good)
		b[i/8] ^= 1 << (i % 8)
		dir.SetContents(OverridesName, b)
		got, err := keeperIn(dir).LoadOverrides()
		isLast := i/8 >= last
		switch {
		case isLast && err == nil && same(got, before):
			if _, _, tail, err := CheckOverrides(dir); err != nil || !tail.Complete || tail.At != int64(last) || tail.Bytes != int64(len(good)-last) {
				t.Errorf("bit %d of byte %d: %+v, %v", i%8, i/8, tail, err)
			}
		case isLast && errors.Is(err, persist.ErrDamaged): // a newline in it
		case !isLast && errors.Is(err, persist.ErrDamaged): // also in the header's version
		default:
			t.Errorf("bit %d of byte %d: got %+v, %v", i%8, i/8, got, err)
		}
	}
}

func TestOverridesDamage(t *testing.T) {
	t.Parallel()
	const head = "cellserver overrides, format 1\n"
	bads := []string{"", "\n", head[:len(head)-1], "cellserver overrides, format 0\n", head + "\n" + string(summed(head + "a \"b\" - DENY\n")[len(head):])}
	for _, line := range []string{
		"", "a", `a "b"`, `a "b" -`, `a "b" - `, `a "b" - deny `, `a "b" - DENY shadow`, `a b - DENY`, `a 'b' - DENY`, "a `b` - DENY",
		`a "b - DENY`, `a "\q" - DENY`, `a "b" x DENY`, `a "b" 1 2 DENY`, `a "b"- DENY`, `ä "b" - DENY`, `a "b" - PLAN ä`, `a "b" - DELETE DENY`,
		`a "b" - FUNNEL 1 1`, `a "b" - FUNNEL 0 1 1`, `a "b" - FUNNEL 1 1 1 FUNNEL 2 2 1`, `a "b" - SLIDINGWINDOW 4097 1`, `a "b" 9223372036854775808 DENY`,
	} {
		bads = append(bads, string(summed(head+line+"\n")), string(summed(head+line+"\nc \"d\" - DENY\n")))
	}
	const header = "cellserver overrides, format 2"
	newer := fmt.Sprintf("%s crc32c %08x\nanything", header, disk.Checksum([]byte(header)))
	bads = append(bads, "cellserver overrides, format 2\nanything")
	for _, bad := range append(bads, newer) {
		dir := disktest.New()
		dir.SetContents(OverridesName, []byte(bad))
		wanted := persist.ErrDamaged
		if bad == newer {
			wanted = persist.ErrNewer
		}
		_, size, _, checkErr := CheckOverrides(dir)
		_, err := keeperIn(dir).LoadOverrides()
		if !errors.Is(err, wanted) || !errors.Is(checkErr, wanted) || size != int64(len(bad)) || strings.Contains(err.Error(), "--data-recover") != (bad != newer) {
			t.Errorf("%q: %v, and checked %v, %d bytes", bad, err, checkErr, size)
		}
		got, err := keeperIn(dir, repairing).LoadOverrides()
		switch aside := string(dir.Contents("damaged-1-" + OverridesName)); {
		case bad == newer && !errors.Is(err, persist.ErrNewer):
			t.Errorf("%q: %v", bad, err)
		case bad != newer && (err != nil || len(got) > 0 || dir.Contents(OverridesName) != nil || aside != bad):
			t.Errorf("%q: %v, set aside %q", bad, err, aside)
		}
	}
	if _, _, _, err := CheckOverrides(disktest.New()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzReadOverrides: what is read is written, and read again as the same.
func FuzzReadOverrides(f *testing.F) {
	f.Add(summed(overridesText))
	f.Add(summed(overridesText)[:200])
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := disktest.New()
		dir.SetContents(OverridesName, text)
		kept, err := readOverrides(dir)
		if err != nil {
			return
		}
		must(t, keeperIn(dir).Rewrite(nil, maps.Values(kept.all)))
		again, err := readOverrides(dir)
		if err != nil || again.tail.Bytes > 0 || !same(again.sorted(), kept.sorted()) {
			t.Errorf("%q: got %+v, %v, want %+v", text, again.sorted(), err, kept.sorted())
		}
	})
}

// BenchmarkReadOverrides reads the most overrides, each with its own rule.
func BenchmarkReadOverrides(b *testing.B) {
	dir := disktest.New()
	all := map[overriddenKey]namedlimit.KeyOverride{}
	for i := range namedlimit.MaxOverrides {
		c := set(fmt.Sprint("customer-", i), int64(i+1))
		all[overriddenKey{c.Limit, c.Key}] = c
	}
	if err := keeperIn(dir).Rewrite(nil, maps.Values(all)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if got, err := keeperIn(dir).LoadOverrides(); err != nil || len(got) != len(all) {
			b.Fatal(err)
		}
	}
}
