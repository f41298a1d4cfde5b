package target

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Figures are a server's resources.
type Figures struct {
	HeapBytes   int64 // after a collection
	RSSBytes    int64
	Goroutines  int64
	Descriptors int64
	Panics      int64
}

// Figures collects the server's garbage and reads its figures.
func (s *Server) Figures(ctx context.Context) (Figures, error) {
	if err := s.get(ctx, "/debug/pprof/heap?gc=1", nil); err != nil {
		return Figures{}, err
	}
	metrics := map[string]int64{}
	if err := s.get(ctx, "/metrics", metrics); err != nil {
		return Figures{}, err
	}
	rss, err := s.RSS()
	return Figures{
		HeapBytes:   metrics["go_memstats_heap_inuse_bytes"] + metrics["go_memstats_stack_inuse_bytes"],
		RSSBytes:    rss,
		Goroutines:  metrics["go_goroutines"],
		Descriptors: metrics["process_open_fds"],
		Panics:      metrics["cellserver_panics_total"],
	}, err
}

// Counters returns the metrics that have no labels, as whole numbers.
func (s *Server) Counters(ctx context.Context) (map[string]int64, error) {
	metrics := map[string]int64{}
	return metrics, s.get(ctx, "/metrics", metrics)
}

// get reads a page of the metrics address, and the metrics without labels from it.
func (s *Server) get(ctx context.Context, path string, metrics map[string]int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Metrics+path, nil)
	if err != nil {
		return err
	}
	request.Close = true // no connection stays open at the server
	response, err := s.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	if metrics == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			metrics[name] = int64(number)
		}
	}
	return lines.Err()
}

// RSS returns the resident set size in bytes.
func (s *Server) RSS() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.PID()))
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0, err
	}
	return resident * int64(os.Getpagesize()), nil
}

// LargestRSS returns the largest resident set size until now, in bytes.
func (s *Server) LargestRSS() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(b), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return 0, err
	}
	return kib << 10, nil
}
