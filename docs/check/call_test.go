package check

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/wire/catalog"
)

// TestReadmeCall: the README's drawings name the call's arguments as the server does, below each its name,
// and have the numbers and the HTTP headers that the server answers.
func TestReadmeCall(t *testing.T) {
	var drawings []string
	for _, f := range fences(t, "README.md") {
		if f.language == "text" {
			drawings = append(drawings, f.text)
		}
	}
	if len(drawings) != 2 {
		t.Fatalf("%d drawings, want the call and the reply", len(drawings))
	}
	call, names, _ := strings.Cut(drawings[0], "\n")
	arguments := strings.Fields(call)
	if !strings.Contains(read(t, "README.md"), "$ redis-cli -p 6380 "+strings.ToLower(call)+"\n") {
		t.Errorf("the README does not send %s", call)
	}
	compareArguments(t, call, strings.Split(strings.TrimRight(names, "\n"), "\n")[1:])
	s := start(t, build(t))
	compareReply(t, drawings[1], repliesTo(t, s, arguments), headersOf(t, s, arguments))
}

// compareArguments expects the names of the call's arguments below them, the last one first.
func compareArguments(t *testing.T, call string, lines []string) {
	t.Helper()
	arguments := strings.Fields(call)[1:]
	var want []catalog.Arg
	for _, c := range catalog.New().Commands() {
		if strings.EqualFold(c.Name, strings.Fields(call)[0]) {
			want = slices.DeleteFunc(slices.Clone(c.Args), func(a catalog.Arg) bool { return a.Type == "pure-token" }) // options
		}
	}
	if len(want) != len(arguments) || len(lines) != len(arguments) {
		t.Fatalf("%d arguments and %d names of %d", len(arguments), len(lines), len(want))
	}
	slices.Reverse(lines)
	at := len(strings.Fields(call)[0])
	for i, argument := range arguments {
		at += strings.Index(call[at:], " "+argument) + 1
		before, below := lines[i][:at], lines[i][at:]
		if strings.Trim(before, " |") != "" || !strings.HasPrefix(below, want[i].Name+" ") {
			t.Errorf("below %s is %q, want %s", argument, lines[i], want[i].Name)
		}
	}
}

// repliesTo returns the replies to the first call and to the one after the capacity is used, at one time.
func repliesTo(t *testing.T, s server, arguments []string) (replies [2][]any) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + s.redisPort})
	defer func() { _ = rdb.Close() }()
	send := func(p redis.Pipeliner, quantity string) *redis.Cmd {
		call := append(slices.Clone(arguments[:5]), quantity)
		values := make([]any, len(call))
		for i, v := range call {
			values[i] = v
		}
		return p.Do(t.Context(), values...)
	}
	pipeline := rdb.TxPipeline()
	first := send(pipeline, arguments[5])
	send(pipeline, "15")
	last := send(pipeline, arguments[5])
	if _, err := pipeline.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return [2][]any{first.Val().([]any), last.Val().([]any)}
}

// answer is what HTTP answers beside the body.
type answer struct {
	status int
	header http.Header
}

// headersOf returns what HTTP answers to such a call on a new key and to one that is denied, and expects
// their Retry-After to be that of the body.
func headersOf(t *testing.T, s server, arguments []string) [2]answer {
	t.Helper()
	url := "http://127.0.0.1:" + s.httpPort + "/v1/check"
	limit := fmt.Sprintf(`"algorithm": "funnel", "max_burst": %s, "count": %s, "period": %s`,
		arguments[2], arguments[3], arguments[4])
	check := func(quantity int) answer {
		body := strings.NewReader(fmt.Sprintf(`{"key": "http", %s, "quantity": %d}`, limit, quantity))
		r, err := http.Post(url, "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		var numbers struct {
			Retry int `json:"retry_after_ms"`
		}
		if err := json.NewDecoder(r.Body).Decode(&numbers); err != nil {
			t.Fatal(err)
		}
		want := ""
		if numbers.Retry >= 0 {
			want = fmt.Sprint((numbers.Retry + 999) / 1000)
		}
		got, state := r.Header.Get("Retry-After"), r.Header.Get("RateLimit")
		if got != want || want != "" && !strings.HasSuffix(state, ";t="+want) {
			t.Errorf("of %d ms the headers are %v", numbers.Retry, r.Header)
		}
		return answer{r.StatusCode, r.Header}
	}
	return [2]answer{check(1), check(16)}
}

// compareReply compares the rows of the reply's drawing with the server's replies and headers.
func compareReply(t *testing.T, drawing string, replies [2][]any, answers [2]answer) {
	t.Helper()
	rows := strings.Split(strings.TrimRight(drawing, "\n"), "\n")[1:]
	names := []string{"limited", "limit", "remaining", "retry_after", "reset_after"}
	if len(rows) != len(names) {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		want := fmt.Sprint(replies[0][i], " ", replies[1][i], " ", names[i])
		if got := strings.Join(strings.Fields(row)[:3], " "); got != want {
			t.Errorf("row %d is %q, want %s", i+1, row, want)
		}
		over := row[strings.LastIndex(row, "  ")+2:]
		header, value, _ := strings.Cut(over, ": ")
		switch {
		case i == 0:
			if want := fmt.Sprintf("status %d; status %d", answers[0].status, answers[1].status); over != want {
				t.Errorf("%q, want %s", over, want)
			}
		case header == "Retry-After":
			if value != fmt.Sprint(replies[1][i]) || answers[0].header.Get(header) != "" || answers[1].header.Get(header) == "" {
				t.Errorf("%s, but the headers are %v and %v", over, answers[0].header, answers[1].header)
			}
		default:
			want, sent := strings.Split(value, ";"), strings.Split(answers[0].header.Get(header), ";")
			if header == "RateLimit" { // has a row for each of its items
				sent = slices.DeleteFunc(sent, func(item string) bool { return !slices.Contains(want, item) })
			}
			if !slices.Equal(want, sent) || want[1][2:] != fmt.Sprint(replies[0][i]) {
				t.Errorf("%s, but the headers are %v", over, answers[0].header)
			}
		}
	}
}
