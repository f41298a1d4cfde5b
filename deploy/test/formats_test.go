package deploytest

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/redis/go-redis/v9"
)

// scraped is what Prometheus's parser makes of a scrape.
type scraped struct {
	types     map[string]string // of each family, by a name as its series have it
	series    []string          // with their labels
	exemplars int
}

// TestScrapeFormats: Prometheus's own parser reads all that it may ask for, and finds the same in each.
func TestScrapeFormats(t *testing.T) {
	t.Parallel()
	s := startServer(t, buildServer(t), "127.0.0.1:0", "127.0.0.1:0", "CELLSERVER_TOP_KEYS_METRIC=10", "CELLSERVER_DATA_DIR="+t.TempDir())
	client := redis.NewClient(&redis.Options{Addr: s.addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	for _, call := range [][]any{
		{"CL.LIMIT", "SET", "named", 0, 1, 3600}, {"CL.CHECK", "named", "user"}, {"CL.THROTTLE", "a \"quoted\"\nkey\\", 0, 1, 60},
		{"CL.THROTTLE", "a \"quoted\"\nkey\\", 0, 1, 60},
	} {
		if err := client.Do(t.Context(), call...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	text := scrapeAs(t, s, "text/plain;version=0.0.4", "text/plain")
	for _, version := range []string{"0.0.1", "1.0.0"} {
		open := scrapeAs(t, s, "application/openmetrics-text;version="+version, "application/openmetrics-text")
		if !slices.Equal(open.series, text.series) || open.exemplars > 0 {
			t.Errorf("OpenMetrics %s: %d series, and the text has %d; %d exemplars", version, len(open.series), len(text.series), open.exemplars)
		}
		for name, kind := range text.types {
			if open.types[name] != kind {
				t.Errorf("OpenMetrics %s: %s is a %q, and in the text a %q", version, name, open.types[name], kind)
			}
		}
	}
	binary := scrapeAs(t, s, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "application/vnd.google.protobuf")
	if len(binary.types) != len(text.types) {
		t.Errorf("protobuf: %d families, and the text has %d", len(binary.types), len(text.types))
	}
}

// scrapeAs has the server answer in a format, and reads it as Prometheus does.
func scrapeAs(t *testing.T, s *server, accept, want string) scraped {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.metrics+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	contentType := answer.Header.Get("Content-Type")
	if !strings.HasPrefix(contentType, want) {
		t.Fatalf("Accept %q: got %q", accept, contentType)
	}
	parser, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page := scraped{types: map[string]string{}}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", contentType, err)
		}
		page.add(parser, entry)
	}
	slices.Sort(page.series)
	return page
}

func (p *scraped) add(parser textparse.Parser, entry textparse.Entry) {
	if entry == textparse.EntryType {
		name, kind := parser.Type()
		family := strings.TrimSuffix(string(name), "_total")
		if kind == model.MetricTypeCounter {
			family += "_total" // which OpenMetrics leaves out of a family's name
		}
		p.types[family] = string(kind)
	}
	if entry == textparse.EntrySeries {
		var l labels.Labels
		parser.Labels(&l)
		p.series = append(p.series, l.String())
		if parser.Exemplar(&exemplar.Exemplar{}) {
			p.exemplars++
		}
	}
}
