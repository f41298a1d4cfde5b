package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
)

// TestFieldsAreAlike for net/http and for a server that writes them itself, whatever the answer.
func TestFieldsAreAlike(t *testing.T) {
	t.Parallel()
	for _, headers := range []httpapi.Headers{httpapi.Draft, httpapi.Legacy, httpapi.Both, httpapi.None} {
		v := newVisitor(t)
		v.api.Headers = headers
		for _, tt := range []struct {
			method, path, body string
			status             int
		}{
			{"GET", "/v1/check/api?key=u", "", 200}, {"GET", "/v1/check/full?key=u", "", 429}, {"GET", "/v1/check/two?key=u", "", 200}, {"GET", "/v1/check/full?key=near", "", 200}, {"POST", "/v1/reserve", `{"checks":[{"limit":"full","key":"held","units":1}],"ttl_ms":1000}`, 200}, {"GET", "/v1/check/api?key=u&quantity=1000001", "", 429},
			{"POST", "/v1/check", `{"checks":[{"limit":"api","key":"u"},{"limit":"full","key":"u"}]}`, 429}, {"POST", "/v1/check", `{"key":"u"}`, 400}, {"GET", "/v1/check", "", 405},
			{"GET", "/t/wrong/v1/check/api?key=u", "", 401}, {"GET", "/v1/check/nosuch?key=u", "", 404}, {"GET", "/v1/openapi.json", "", 200}, {"GET", "/v1/limits", "", 200},
			{"POST", "/v1/acquire", `{"key":"c","max":1,"lease_ms":1500}`, 200}, {"POST", "/v1/acquire", `{"key":"c","max":1,"lease_ms":1500}`, 429}, {"POST", "/v1/reset", `{"key":"x"}`, 200},
		} {
			v.asking(tt.path)
			v.x.Request.Method = tt.method
			v.do([]byte(tt.body))
			to := &v.x.Answer
			if to.Status != tt.status {
				t.Errorf("%s %s %s: got %d: %s", tt.method, tt.path, tt.body, to.Status, to.Body)
			}
			set := http.Header{}
			to.SetHeader(set)
			set.Del("Content-Length")
			read, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(bytes.Clone(v.out), "\r\n"...)))).ReadMIMEHeader()
			if err != nil || !maps.EqualFunc(read, textproto.MIMEHeader(set), func(a, b []string) bool { return strings.Join(a, "|") == strings.Join(b, "|") }) {
				t.Errorf("%s %s, headers %s: appended are %v, %v, set are %v", tt.method, tt.path, headers, read, err, set)
			}
		}
	}
}

// TestExchangesAreKept: nothing of a request is left for the next one, nor of a body that is overwritten.
func TestExchangesAreKept(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	body := make([]byte, 0, 1<<10)
	answers := map[int]string{}
	for round := range 3 {
		for i, tt := range [][2]string{
			{"/v1/peek", `{"limit":"api","key":"some other key"}`}, {"/v1/check", `{"checks":[{"limit":"full","key":"u"},{"key":"u","algorithm":"fixed_window","max_count":5,"period":60,"quantity":0}]}`},
			{"/v1/commit", `{"key":"r","id":"77","late":{"capacity":1,"count":1,"period":1}}`}, {"/v1/release", `{"key":"c","token":"me"}`}, {"/v1/reset", `{"limit":"api","key":"none"}`},
			{"/v1/peek", `{"key":"own","algorithm":"quota","max_count":5,"every":"day","time_zone":"Europe/Berlin"}`}, {"/v1/peek", `{"key":7}`},
			{"/v1/reserve", `{"checks":[{"limit":"two","key":"held","units":7}],"ttl_ms":60000,"id":"mine"}`}, {"/v1/commit", `{"checks":[{"limit":"two","key":"held","units":0}],"id":"mine"}`},
			{"/v1/extend", `{"checks":[{"limit":"two","key":"held"}],"id":"none","ttl_ms":1}`}, {"/v1/reserve", `{"checks":[{"limit":"full","key":"u","units":1}],"ttl_ms":60000}`},
		} {
			v.posting()
			v.x.Request.Path = tt[0]
			v.body = body[:copy(body[:cap(body)], tt[1])]
			v.do(v.body)
			got := fmt.Sprintf("%d %s%s", v.x.Answer.Status, v.x.Answer.Body, v.out)
			if round == 0 {
				answers[i] = got
			} else if got != answers[i] {
				t.Errorf("%s %s: got\n%s\nand before\n%s", tt[0], tt[1], got, answers[i])
			}
		}
	}
	if got := answers[1]; !strings.HasPrefix(got, "429 ") || !strings.Contains(got, `"violated-policies":["full"]`) {
		t.Error(got)
	}
}

// TestFailedExchanges: a server's errors are answered as its connections' are.
func TestFailedExchanges(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	for _, tt := range []struct {
		err     error
		status  int
		closes  bool
		outcome door.Outcome
	}{
		{httpapi.ErrLongBody, 413, true, door.Refused}, {httpapi.ErrBody, 400, true, door.Refused}, {door.ErrFull, 503, true, door.Failed},
		{door.ErrToken, 401, false, door.Refused}, {&door.RefusedError{Reason: "DENIED"}, 403, false, door.Refused}, {fmt.Errorf("it has ended"), 503, true, door.Failed},
	} {
		v.posting()
		if !v.api.Admit(&v.x) || !v.x.TakesBody() {
			t.Fatal("not admitted")
		}
		v.api.Fail(&v.x, tt.err)
		if to := &v.x.Answer; to.Status != tt.status || to.Close != tt.closes || to.Outcome != tt.outcome {
			t.Errorf("%v: got %+v", tt.err, to)
		}
	}
}

// FuzzExchange: whatever is asked is answered, by JSON and by fields of one line each.
func FuzzExchange(f *testing.F) {
	f.Add("GET", "/v1/check/api", "key=u&quantity=0&denied=403", "X-Api-Key", "acme", "")
	f.Add("HEAD", "/v1/check/api", "by=ip,header:a,hash:path,method,host", "X-Forwarded-For", "192.0.2.1, 127.0.0.1", "")
	f.Add("POST", "/v1/check", "", "Content-Type", "application/json", `{"checks":[{"limit":"full","key":"u"},{"key":"k","algorithm":"quota","max_count":1,"every":"day"}],"each":true}`)
	f.Add("POST", "/t/"+token+"/v1/reserve", "", "Origin", "null", `{"key":"r","capacity":5,"count":1,"period":"1m","ttl_ms":1000}`)
	f.Add("POST", "/v1/reserve", "", "a", "b", `{"checks":[{"limit":"api","key":"r","units":2}],"ttl_ms":1000,"charge":true,"id":"i"}`)
	f.Add("POST", "/v1/commit", "", "a", "b", `{"checks":[{"limit":"api","key":"r","units":3}],"id":"i"}`)
	f.Add("POST", "/v1/extend", "", "a", "b", `{"checks":[{"limit":"api","key":"r"}],"ttl_ms":1000,"id":"i"}`)
	f.Add("GET", "/v1/limits/api/explain", "key=%41", "Forwarded", `for="[2001:db8::1]:1";by=a`, "")
	v := newVisitor(f)
	f.Fuzz(func(t *testing.T, method, path, query, name, value, body string) {
		v.asking(path)
		r := &v.x.Request
		r.Method, r.Query = method, query
		r.Fields[0].Name, r.Fields[0].Value = name, value
		v.do([]byte(body))
		to := &v.x.Answer
		if to.Status < 200 || to.Status > 503 || !json.Valid(to.Body) {
			t.Errorf("got %d %q", to.Status, to.Body)
		}
		lines := strings.Split(strings.TrimSuffix(string(v.out), "\r\n"), "\r\n")
		for _, line := range lines {
			if name, value, ok := strings.Cut(line, ": "); !ok || name == "" || value == "" || strings.ContainsAny(line, "\r\n") {
				t.Errorf("got the field %q", line)
			}
		}
	})
}
