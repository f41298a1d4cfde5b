package squares

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/resptest"
)

// way is a door of a server, or a manner to call it.
type way struct {
	name string
	unit unit
	most int // questions at once
	ask  func(t *testing.T, all []question) []answer
	may  func(q *question) bool // nil for all but those of the page
	only string                 // kind of questions; "" for several

	holds bool // it takes calls about holds
}

// command is the question to Redis clients.
func (q *question) command() []string {
	c := q.calls[0]
	switch q.kind {
	case "reserve", "commit", "extend":
		return q.holdCommand()
	case "explain":
		return []string{"CL.LIMIT", "EXPLAIN", c.name, c.key}
	case "check":
		words := []string{"CL.CHECK", c.name, c.key, strconv.FormatInt(c.units, 10)}
		if c.debit {
			words = append(words, "DEBIT")
		}
		if c.most {
			words = append(words, "ATMOST")
		}
		return words
	}
	words := []string{"CL.MCHECK", strconv.Itoa(len(q.calls))}
	for _, of := range q.calls {
		words = append(words, of.name, of.key)
	}
	words = append(words, "QUANTITY", strconv.FormatInt(c.units, 10))
	if q.each {
		words = append(words, "EACH")
	}
	if c.debit {
		words = append(words, "DEBIT")
	}
	if c.most {
		words = append(words, "ATMOST")
	}
	return words
}

func numbers(r resptest.Reply) row {
	var n [6]int64
	for i := range min(len(r.Elements), len(n)) {
		n[i] = r.Elements[i].Number
	}
	return row{n[0] == 1, n[1], n[2], n[3], n[4], n[5]}
}

// told reads the reply to a question.
func (q *question) told(r resptest.Reply) (a answer) {
	if r.Kind == '-' {
		return answer{failed: true, text: r.Text}
	}
	switch q.kind {
	case "reserve":
		last := len(r.Elements) - 1
		if a.id, r.Elements = r.Elements[last].Text, r.Elements[:last]; a.id == "-1" { // RESP2's null
			a.id = ""
		}
		a.head = r.Elements[0].Number == 1
		for _, e := range r.Elements[1:] {
			a.rows = append(a.rows, numbers(e))
		}
	case "commit", "extend":
		a.rows = []row{{limit: r.Number}}
	case "check":
		a.rows = []row{numbers(r)}
	case "together":
		a.head = r.Elements[0].Number == 1
		for _, e := range r.Elements[1:] {
			a.rows = append(a.rows, numbers(e))
		}
	case "explain":
		if by := r.Elements[0]; by.Kind != '_' {
			a.by = by.Text
		}
		for _, e := range r.Elements[1:] {
			a.texts, a.rows = append(a.texts, e.Elements[0].Text), append(a.rows, numbers(e.Elements[1]))
		}
	}
	return a
}

// client is a connection by the Redis protocol.
type client struct {
	t    *testing.T
	conn io.ReadWriter
	left string
}

func newClient(t *testing.T, addr, protocol string) *client {
	t.Helper()
	c := &client{t: t, conn: harness.DialTCP(t, addr)}
	c.say([]string{"HELLO", protocol})
	return c
}

// say sends commands at once and returns their replies.
func (c *client) say(commands ...[]string) (replies []resptest.Reply) {
	c.t.Helper()
	var b []byte
	for _, words := range commands {
		b = resptest.Append(b, words...)
	}
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	for len(replies) < len(commands) {
		if r, rest, err := resptest.Parse(c.left); err == nil {
			replies, c.left = append(replies, r), rest
			continue
		}
		n, err := c.conn.Read(buf)
		if err != nil {
			c.t.Fatalf("%v: %v after %q", commands, err, c.left)
		}
		c.left += string(buf[:n])
	}
	return replies
}

// one sends a command.
func (c *client) one(words ...string) resptest.Reply {
	c.t.Helper()
	return c.say(words)[0]
}

func (c *client) pipelined(_ *testing.T, all []question) (answers []answer) {
	var commands [][]string
	for i := range all {
		commands = append(commands, all[i].command())
	}
	for i, r := range c.say(commands...) {
		answers = append(answers, all[i].told(r))
	}
	return answers
}

func (c *client) inEXEC(t *testing.T, all []question) (answers []answer) {
	commands := [][]string{{"MULTI"}}
	for i := range all {
		commands = append(commands, all[i].command())
	}
	replies := c.say(append(commands, []string{"EXEC"})...)
	last := replies[len(replies)-1]
	if len(last.Elements) != len(all) {
		t.Fatalf("%v: EXEC replied %+v", commands, replies)
	}
	for i, r := range last.Elements {
		answers = append(answers, all[i].told(r))
	}
	return answers
}

func (c *client) inScript(_ *testing.T, all []question) (answers []answer) {
	for i := range all {
		q := &all[i]
		var keys []string
		for _, of := range q.calls {
			keys = append(keys, of.name+":"+of.key)
		}
		words, of := append([]string{"EVAL", "return redis.call(unpack(ARGV))", strconv.Itoa(len(keys))}, keys...), q.command()
		if q.kind == "check" { // alone, so that it is executed over a store, too
			words[1], of = "return redis.call('CL.CHECK',ARGV[1],ARGV[2],ARGV[3]"+strings.Repeat(",ARGV[4]", len(of)-4)+")", of[1:]
		}
		answers = append(answers, q.told(c.one(append(words, of...)...)))
	}
	return answers
}

// redisDoors are those of the Redis protocol.
func redisDoors(t *testing.T, addr string, remote bool) []way {
	t.Helper()
	two, three := newClient(t, addr, "2"), newClient(t, addr, "3")
	return []way{
		{name: "RESP2", unit: seconds, most: 1, ask: two.pipelined, holds: true},
		{name: "RESP3", unit: seconds, most: 1, ask: three.pipelined, holds: true},
		{name: "pipeline", unit: seconds, most: 8, ask: two.pipelined, holds: true},
		{name: "EXEC", unit: seconds, most: 5, ask: two.inEXEC, holds: !remote},
		{name: "EVAL", unit: seconds, most: 1, ask: two.inScript, holds: !remote, may: func(q *question) bool {
			return q.kind == "check" || q.kind == "together" && !remote
		}},
	}
}

// api is a client of the HTTP API.
type api struct {
	http.Client
	url string
}

// result is a decision in JSON.
type result struct {
	Allowed        bool
	Limit          int64
	Remaining      int64
	RetryAfterMs   int64 `json:"retry_after_ms"`
	ResetAfterMs   int64 `json:"reset_after_ms"`
	RetryAfterSecs int64 `json:"retry_after_seconds"`
	ResetAfterSecs int64 `json:"reset_after_seconds"`
	Taken          int64
	Rule           string
	Near           bool
}

func (r *result) row() row {
	return row{!r.Allowed, r.Limit, r.Remaining, r.RetryAfterMs + r.RetryAfterSecs, r.ResetAfterMs + r.ResetAfterSecs, r.Taken}
}

// body is that of an answer.
type body struct {
	result
	Checks   []result
	ID       string
	Extended bool
	settled
	Override string
	Rules    []result

	headers string
}

func (a *api) send(t *testing.T, method, path, in string) (status int, b body) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		t.Fatalf("%s %s %s: %v: %d %q", method, path, in, err, answer.StatusCode, text)
	}
	b.headers = answer.Header.Get("RateLimit")
	return answer.StatusCode, b
}

func (a *api) get(t *testing.T, all []question) (answers []answer) {
	for i := range all {
		c := all[i].calls[0]
		path := fmt.Sprintf("/v1/check/%s?key=%s&quantity=%d", c.name, c.key, c.units)
		if c.most {
			path += "&at_most=true"
		}
		if all[i].kind == "explain" {
			path = fmt.Sprintf("/v1/limits/%s/explain?key=%s", c.name, c.key)
		}
		status, b := a.send(t, http.MethodGet, path, "")
		answers = append(answers, all[i].inJSON(status, &b))
	}
	return answers
}

func (a *api) post(t *testing.T, all []question) (answers []answer) {
	for i := range all {
		q := &all[i]
		path := "/v1/check"
		var in any
		of := func(c call) map[string]any {
			m := map[string]any{"limit": c.name, "key": c.key, "quantity": c.units}
			if c.most {
				m["at_most"] = true
			}
			switch {
			case c.debit:
				path = "/v1/debit"
			case c.units < 0:
				path, m["quantity"] = "/v1/refund", -c.units
			case c.units == 0 && q.kind == "check":
				path = "/v1/peek"
				delete(m, "quantity")
			}
			return m
		}
		if in = of(q.calls[0]); q.kind == "together" {
			var checks []any
			for _, c := range q.calls {
				checks = append(checks, of(c))
			}
			in = map[string]any{"checks": checks, "each": q.each}
		}
		text, _ := json.Marshal(in)
		status, b := a.send(t, http.MethodPost, path, string(text))
		answers = append(answers, q.inJSON(status, &b))
	}
	return answers
}

// inJSON reads an answer.
func (q *question) inJSON(status int, b *body) (a answer) {
	if status != http.StatusOK && status != http.StatusTooManyRequests {
		return answer{failed: true, text: strconv.Itoa(status)}
	}
	switch q.kind {
	case "check":
		a.rows, a.headers, a.nears = []row{b.row()}, b.headers, []bool{b.Near}
	case "together":
		a.head = status != http.StatusOK
		for i := range b.Checks {
			a.rows, a.nears = append(a.rows, b.Checks[i].row()), append(a.nears, b.Checks[i].Near)
		}
	case "explain":
		a.by = b.Override
		for i := range b.Rules {
			a.texts, a.rows = append(a.texts, b.Rules[i].Rule), append(a.rows, b.Rules[i].row())
		}
	}
	return a
}

func httpDoors(url string) []way {
	a := &api{url: url}
	return []way{
		{name: "HTTP GET", unit: milliseconds, most: 1, ask: a.get, may: func(q *question) bool {
			return q.kind == "check" && q.calls[0].units >= 0 && !q.calls[0].debit
		}},
		{name: "HTTP explain", only: "explain", unit: seconds, most: 1, ask: a.get, may: func(q *question) bool { return q.kind == "explain" }},
		{name: "HTTP POST", unit: milliseconds, most: 1, ask: a.post, may: func(q *question) bool {
			return q.kind == "check" || q.kind == "together" && !q.calls[0].debit
		}},
		{name: "HTTP holds", only: "reserve", unit: milliseconds, most: 1, ask: a.hold, holds: true, may: func(*question) bool { return false }},
	}
}

var (
	verdict = regexp.MustCompile(`<p class="verdict ([a-z]*)">([^<]*)</p>`)
	digits  = regexp.MustCompile(`[\d,]+`)
)

// look reads the page about a limit's key: whether the next call is limited, and how many units are left.
func look(page string) (a answer) {
	m := verdict.FindStringSubmatch(page)
	if m == nil {
		return answer{failed: true, text: "no verdict"}
	}
	r := row{limited: m[1] == "limited"}
	if n := digits.FindString(m[2]); !r.limited && n != "" {
		r.remaining, _ = strconv.ParseInt(strings.ReplaceAll(n, ",", ""), 10, 64)
	}
	return answer{rows: []row{r}}
}

func pageDoor(site string) way {
	return way{name: "page", only: "page", unit: seconds, most: 1, may: func(q *question) bool { return q.kind == "page" }, ask: func(t *testing.T, all []question) []answer {
		t.Helper()
		c := all[0].calls[0]
		ctx, cancel := patience.Context(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, site+"/?limit="+url.QueryEscape(c.name)+"&key="+url.QueryEscape(c.key), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return []answer{look(string(text))}
	}}
}
