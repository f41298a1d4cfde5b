package dashboard

import (
	"strings"
	"testing"

	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestLookAtValue: of a value neither a limit nor a kind is asked for, and its text is not shown.
func TestLookAtValue(t *testing.T) {
	s := testSource(nil)
	s.Limits = limitsOf(t, definition("api", perPeriod(6, 8, 60))).All
	s.State = statesOf(map[string]limiter.State{
		"counter": limiter.ValueOf([]byte("-12345"), testNowNs+30e9),
		"text":    limiter.ValueOf([]byte("a <secret>"), limiter.NeverNs),
		"gone":    limiter.ValueOf([]byte("1"), testNowNs),
		"funnel":  {ExpiresNs: testNowNs + 1e9},
	})
	p := New(s)
	const isValue, counter, text = "A value: no limiter decides", "<dt>number</dt><dd>-12,345</dd>", "<dt>length</dt><dd>10 bytes</dd>"
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"key=counter", []string{isValue, counter, "<dd>value</dd>", "<dt>expires</dt><dd>in 30\u00a0s</dd>", `value="counter"`}},
		{"key=text&db=0&by=", []string{isValue, text, "<dt>expires</dt><dd>never</dd>"}},
		{"key=counter&by=bucket+1", []string{isValue, counter}},
	} {
		page := body(t, p, "lang=en&"+tt.query)
		wantText(t, page, tt.want...)
		lacksText(t, page, "secret", "aria-invalid=", "verdict allowed")
	}
	for _, query := range []string{"key=gone", "key=funnel", "key=absent", "key=counter&db=16", "key=counter&db=x", "key=counter&limit=api"} {
		lacksText(t, body(t, p, "lang=en&"+query), isValue)
	}
	wantText(t, body(t, p, "lang=zh&key=counter"), "这是一个值", "<dt>数值</dt><dd>-12,345</dd>")
}

// TestValuesOnThePage: their memory and what found no room, and nothing without any.
func TestValuesOnThePage(t *testing.T) {
	p := New(testSource(nil))
	p.addSample(0, history.Sample{})
	p.addSample(1, history.Sample{})
	const full, memory = "The memory for values is full.", "Memory of values"
	lacksText(t, body(t, p, "lang=en"), full, memory, "values, of which")
	values := store.ValueStats{Keys: 12_345, Endless: 300, Bytes: 60 << 20, MaxBytes: 64 << 20}
	p.addSample(2, history.Sample{Values: values})
	wantText(t, body(t, p, "lang=en"), tileOf("valuememory", warning, memory, "60 <small>of 64"), announced(memorySaturated, "More than 75\u00a0% of the memory for values"))
	p.addSample(20, history.Sample{Values: values})
	wantText(t, body(t, p, "lang=en"), "12,345 of the keys are values, of which 300 never expire.")
	values.Evicted = 70
	p.addSample(21, history.Sample{Values: values})
	wantText(t, body(t, p, "lang=en"), announced(valuesEvicted, full+" Values are evicted"), "<p>70 within the last 5 minutes.")
	wantText(t, body(t, p, "lang=zh"), "值的内存已满。", "共 70 次（最近 5 分钟）。")
	values.Refused = 8
	p.addSample(40, history.Sample{Values: values})
	wantText(t, body(t, p, "lang=en"), announced(valuesRefused, full+" Calls that need more memory"), "<p>8 within the last 5 minutes.",
		"<dt>values refused at their memory limit</dt><dd>8</dd>", "<dt>values evicted</dt><dd>70</dd>", tileOf("valuememory", critical, memory, "60"))
}

// TestRefusedCommands: those that clients send are listed with what to send instead.
func TestRefusedCommands(t *testing.T) {
	s := testSource(nil)
	var all []Refusal
	s.Refused = func() []Refusal { return all }
	p := New(s)
	lacksText(t, body(t, p, "lang=en"), "Commands refused")
	all = []Refusal{{"HSET", "cellserver keeps limits, not <hashes>", 1234}, {"", "", 5}}
	page := body(t, p, "lang=en")
	wantText(t, page, "Commands refused", "<code>HSET</code> <small>cellserver keeps limits, not &lt;hashes&gt;</small></th><td>1,234</td>", "unknown commands</th><td>5</td>")
	for range 20 {
		all = append(all, Refusal{Command: "SADD", Calls: 1})
	}
	if n := strings.Count(body(t, p, "lang=en"), "<code>SADD</code>"); n != maxRefusals-2 {
		t.Errorf("%d more are listed", n)
	}
}
