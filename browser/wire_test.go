package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
)

// TestWire: what the browser receives, with all headers, is at most 100 KB for the page and its first figures and at most 3 KB for
// each refresh, with ten keys of 36 bytes in each ranking and 20 named limits.
func TestWire(t *testing.T) {
	t.Parallel()
	f := &fake{}
	source := f.source()
	source.Persistence = nil
	source.Top = func(topkeys.Ranking, int) []topkeys.Entry { return busyKeys() }
	named := namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)})
	for i := range 20 {
		definition := namedlimit.Definition{Name: fmt.Sprintf("limit-%02d", i), Windows: []namedlimit.Window{{Capacity: 16, Count: 30, PeriodSec: 60}}}
		if err := named.Set(definition); err != nil {
			t.Fatal(err)
		}
	}
	source.Limits = named.All
	f.listen(t, f.run(t, source))

	v := visit(t, f.url)
	responses, ends := chromedp.Events(v.tab, network.ResponseReceived), chromedp.Events(v.tab, network.LoadingFinished)
	v.open("?lang=en")
	for range 4 {
		v.refreshed()
	}
	var wanted []network.RequestID // the page, its first figures, and refreshes
	for e, err := range responses {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(e.Response.URL, f.url) {
			if wanted = append(wanted, e.RequestID); len(wanted) == 6 {
				break
			}
		}
	}
	sizes := map[network.RequestID]float64{}
	for e, err := range ends {
		if err != nil {
			t.Fatal(err)
		}
		if sizes[e.RequestID] = e.EncodedDataLength; e.RequestID == wanted[len(wanted)-1] {
			break
		}
	}
	if first := sizes[wanted[0]] + sizes[wanted[1]]; first < 1000 || first > 100_000 {
		t.Errorf("the page and its first figures are %v bytes", first)
	}
	for _, id := range wanted[2:] {
		if sizes[id] < 100 || sizes[id] > 3000 {
			t.Errorf("a refresh is %v bytes", sizes[id])
		}
	}
	t.Logf("the page is %v bytes, its first figures %v, a refresh %v", sizes[wanted[0]], sizes[wanted[1]], sizes[wanted[5]])
}

func busyKeys() []topkeys.Entry {
	keys := make([]topkeys.Entry, 10)
	for i := range keys {
		keys[i] = topkeys.Entry{
			Name:   fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", i*7919, i*31, i*17, i*13, i*104729),
			Recent: 1000 * rand.Float64(), RecentError: 5 * rand.Float64(), //nolint:gosec // figures
			IsRecent: true, Share: rand.Float64() / 10, //nolint:gosec // likewise
		}
	}
	return keys
}
