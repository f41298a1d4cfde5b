package runner

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"

	gostats "github.com/lyft/gostats"
)

// other has what the tests do not read. It is an alias, as Store is a method, too.
type other = gostats.Store

// metricsStore has the values that a program's metrics have at the moment.
type metricsStore struct {
	other
	url string
}

func newMetricsStore(url string) *metricsStore {
	return &metricsStore{gostats.NewStore(gostats.NewNullSink(), false), url}
}

func (s *metricsStore) NewCounter(name string) gostats.Counter {
	return s.NewCounterWithTags(name, nil)
}

func (s *metricsStore) NewCounterWithTags(name string, tags map[string]string) gostats.Counter {
	return counter{s.other.NewCounter(name), s.value(name, tags)}
}

func (s *metricsStore) NewGauge(name string) gostats.Gauge {
	return gauge{s.other.NewGauge(name), s.value(name, nil)}
}

type counter struct {
	gostats.Counter
	value uint64
}

func (c counter) Value() uint64 { return c.value }

type gauge struct {
	gostats.Gauge
	value uint64
}

func (g gauge) Value() uint64 { return g.value }

var (
	ofLimit = regexp.MustCompile(`^ratelimit\.service\.rate_limit\.([^.]+)\.(.+)\.([a-z_]+)$`)
	sample  = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? ([0-9.e+]+)$`)
	label   = regexp.MustCompile(`([a-zA-Z_0-9]+)="([^"]*)"`)
)

// value returns 0 for what is not there, as a counter that nobody has increased.
func (s *metricsStore) value(name string, tags map[string]string) uint64 {
	want := map[string]string{}
	if m := ofLimit.FindStringSubmatch(name); m != nil {
		name, want["domain"], want["descriptor"] = "ratelimit.service.rate_limit."+m[3], m[1], m[2]
	}
	for tag, value := range tags {
		want[tag] = value
	}
	return s.read(strings.ReplaceAll(name, ".", "_"), want)
}

func (s *metricsStore) read(name string, want map[string]string) uint64 {
	answer, err := http.Get(s.url)
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		return 0
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		m := sample.FindStringSubmatch(lines.Text())
		if m == nil || m[1] != name {
			continue
		}
		left := len(want)
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if value, wanted := want[l[1]]; wanted && value == l[2] {
				left--
			}
		}
		if left == 0 {
			value, _ := strconv.ParseFloat(m[3], 64)
			return uint64(value)
		}
	}
	return 0
}
