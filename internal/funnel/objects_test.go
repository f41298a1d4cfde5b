package funnel_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/funnel"
)

// funnelObject is a funnel as in articles, with faults of copies.
type funnelObject struct {
	capacity, room, aSecond float64
	seenNs                  int64
	perMillisecond          bool // the rate is multiplied by milliseconds
	stands                  bool // the time of the last leak is not moved
	uncapped                bool // what has leaked is added without end
}

func (f *funnelObject) pour(nowNs int64) bool {
	units := float64(nowNs-f.seenNs) / 1e9 * f.aSecond
	if f.perMillisecond {
		units *= 1000
	}
	if units >= 1 {
		f.room += float64(int64(units))
		if !f.uncapped {
			f.room = min(f.room, f.capacity)
		}
		if !f.stands {
			f.seenNs = nowNs
		}
	}
	if f.room < 1 {
		return false
	}
	f.room--
	return true
}

// TestObjectsOfArticles checks the figures of docs/RECIPES.md: requests allowed by faulty copies and by the
// server.
func TestObjectsOfArticles(t *testing.T) {
	limit, err := funnel.NewLimit(funnel.Burst, 14, 30, 60)
	if err != nil {
		t.Fatal(err)
	}
	const calls, second = 6000, int64(1e9)
	tatNs := int64(0)
	objects := [4]funnelObject{{}, {stands: true}, {uncapped: true}, {perMillisecond: true}}
	var allowed [len(objects) + 1]int
	for i := range int64(calls) {
		nowNs := (1_700_000_000 + i + i/60*60) * second // 60 calls a second apart, and a minute's pause
		next, result := limit.Throttle(tatNs, nowNs, 1)
		if tatNs = next; !result.Limited {
			allowed[len(objects)]++
		}
		for j := range objects {
			f := &objects[j]
			if i == 0 {
				f.capacity, f.room, f.aSecond, f.seenNs = 15, 15, 0.5, nowNs
			}
			if f.pour(nowNs) {
				allowed[j]++
			}
		}
	}
	var want []string
	for _, n := range []int{allowed[len(objects)], allowed[0], allowed[1], allowed[2], allowed[3]} {
		want = append(want, fmt.Sprintf("%d,%03d", n/1000, n%1000))
	}
	row := regexp.MustCompile(`(?m)^\| .* \| (\d,\d{3}) \|$`)
	for _, name := range []string{"RECIPES.md", "RECIPES.zh-CN.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), "`TestObjectsOfArticles`")
		table, _, _ = strings.Cut(table, "\n## ")
		var got []string
		for _, cells := range row.FindAllStringSubmatch(table, -1) {
			got = append(got, cells[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}
