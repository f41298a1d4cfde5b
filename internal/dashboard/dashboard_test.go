package dashboard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/histogram"
	"cellserver/internal/topkeys"
)

func TestPage(t *testing.T) {
	p := New(testSource(nil))
	body := get(t, p, "/").Body.String()
	wantText(t, body, `<html lang="en">`, "1.2.3", "The first values appear in a few seconds.", `id="chart-decisions"`)
	fill(p, 3)
	body = get(t, p, "/").Body.String()
	wantText(t, body, "<dt>allowed /s</dt><dd>10</dd>", "<dt>limited /s</dt><dd>1</dd>", "9.1\u00a0%",
		"<dt>Keys</dt><dd>3,000</dd>", "3\u00a0MiB", `role="img" aria-label="Decisions per second: allowed 10, limited 1"`,
		"1 ago")
}

// TestMaximum: the page says how much of the maximum is used, and what found no room, in both languages.
func TestMaximum(t *testing.T) {
	p := New(testSource(nil))
	for i := range uint64(3) {
		p.history.add(testNowNs+int64(i)*int64(sampleInterval), Sample{
			MemoryBytes: 96 << 20, MaxMemoryBytes: 150 << 20, Evicted: 100 * i, Refused: 20 * i,
		}, p.source.Latency())
	}
	wantText(t, get(t, p, "/?lang=en").Body.String(), "<dt>Memory</dt><dd>96\u00a0MiB / 150\u00a0MiB</dd>", "<dt>Keys evicted /s</dt><dd>50</dd>",
		"<dt>New keys refused /s</dt><dd>10</dd>")
	wantText(t, get(t, p, "/?lang=zh").Body.String(), "<dt>淘汰的键 /s</dt><dd>50</dd>", "<dt>拒绝的新键 /s</dt><dd>10</dd>")
}

func TestLatencyAndHotKeys(t *testing.T) {
	s := testSource(nil)
	s.Top = func(ranking topkeys.Ranking, _ int) []topkeys.Entry {
		if ranking == topkeys.Limited {
			return nil
		}
		return []topkeys.Entry{
			{Name: "<img src=x onerror=alert(1)>", CallsPerSecond: 12.5, Share: 0.25},
			{Name: "\"><script>alert(1)</script>\xff\x00", DB: 3},
			{Name: "long... (#1, 500 bytes)", Cut: true, CallsPerSecond: 8, Error: 1.5},
		}
	}
	p := New(s)
	fill(p, 3)
	body := get(t, p, "/?lang=en&max_burst=1").Body.String()
	wantText(t, body, `id="chart-latency"`, "median <b>953\u00a0ns<", "99.9 % <b>1.91\u00a0µs<",
		"&lt;img src=x onerror=alert(1)&gt;", "12.5", "25.0\u00a0%", "No key stands out now.", "db 3", "<td>8 ± 1.50</td>", "<td>12.5</td>",
		`&#34;\&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\xff\x00&#34;`,
		`href="/?db=0&amp;key=%3Cimg&#43;src%3Dx&#43;onerror%3Dalert%281%29%3E&amp;lang=en&amp;max_burst=1#look"`, `<th scope="row"><bdi class="key">long... (#1, 500 bytes)</bdi></th>`)
	if strings.Contains(body, "<img") || strings.Count(body, "<script>") != 1 {
		t.Error("a key became markup")
	}
}

func TestPolicyHoldsForWhatIsInline(t *testing.T) {
	w := get(t, New(testSource(nil)), "/?key=a&max_burst=1&count=1&period=1")
	policy, body := w.Header().Get("Content-Security-Policy"), w.Body.String()
	for _, tag := range []string{"style", "script"} {
		parts := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(body, -1)
		if len(parts) != 1 {
			t.Fatalf("%d of <%s>", len(parts), tag)
		}
		if want := tag + "-src '" + digest(parts[0][1]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	wantText(t, policy, "default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'")
	if m := regexp.MustCompile(`\s(style|on[a-z]+)=`).FindString(body); m != "" {
		t.Errorf("the page has the attribute %q, which the policy forbids", m)
	}
	if m := regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//[^"]*`).FindString(body); m != "" {
		t.Errorf("the page links to another host: %s", m)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Connection": "close",
		"Cross-Origin-Resource-Policy": "same-origin", "Content-Type": "text/html; charset=utf-8",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestRun: samples follow the clock, the history is bounded, and Run ends with its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testSource(nil)
		s.Now = func() int64 { return time.Now().UnixNano() }
		requests := uint64(0)
		s.Sample = func() Sample {
			requests += 100
			return Sample{Allowed: requests}
		}
		p := New(s)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			p.Run(ctx)
			close(ended)
		}()
		for _, tt := range []struct {
			after time.Duration
			want  int
		}{{0, 0}, {sampleInterval, 1}, {10 * sampleInterval, 11}, {historySpan, historyCount}, {historySpan, historyCount}} {
			time.Sleep(tt.after)
			synctest.Wait()
			points, _ := p.history.points()
			if len(points) != tt.want {
				t.Errorf("%d points, want %d", len(points), tt.want)
			}
			for i, point := range points {
				if point.allowed != 50 {
					t.Fatalf("%g a second, want 50", point.allowed)
				}
				if i > 0 && point.atNs-points[i-1].atNs != int64(sampleInterval) {
					t.Fatalf("point %d is not after the one before", i)
				}
			}
		}
		cancel()
		<-ended
	})
}

// TestHistoryOfASuspendedServer: the history does not exceed 15 minutes although samples came late.
func TestHistoryOfASuspendedServer(t *testing.T) {
	var h history
	none := histogram.NewScale().NewSnapshot()
	nowNs := int64(testNowNs)
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {sampleInterval, 1}, {sampleInterval, 2}, {historySpan - sampleInterval, 2}, {sampleInterval, 2}, {time.Hour, 1}} {
		nowNs += int64(tt.after)
		h.add(nowNs, Sample{}, none)
		if points, _ := h.points(); len(points) != tt.want || len(points) > 0 && points[len(points)-1].atNs != nowNs {
			t.Errorf("after %s: %d points, want %d", tt.after, len(points), tt.want)
		}
	}
}

// TestRenderedOncePerSample: however often the page is loaded, charts are drawn and hot keys fetched once per sample.
func TestRenderedOncePerSample(t *testing.T) {
	calls := 0
	s := testSource(nil)
	s.Top = func(topkeys.Ranking, int) []topkeys.Entry {
		calls++
		return nil
	}
	p := New(s)
	for i := range 3 {
		fill(p, i+1)
		for range 5 {
			get(t, p, "/")
		}
	}
	if calls != 2*3 {
		t.Errorf("the hot keys were fetched %d times, want 6", calls)
	}
}

func BenchmarkPage(b *testing.B) {
	for _, name := range []string{"new sample", "drawn"} {
		b.Run(name, func(b *testing.B) {
			p, none := New(testSource(nil)), histogram.NewScale().NewSnapshot()
			fill(p, historyCount)
			for i := range b.N {
				if name == "new sample" {
					p.history.add(testNowNs+int64(historyCount+1+i)*int64(sampleInterval), Sample{}, none)
				}
				w := httptest.NewRecorder()
				p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				b.ReportMetric(float64(w.Body.Len()), "bytes/page")
			}
		})
	}
}
