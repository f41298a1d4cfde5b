package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	cellserver "cellserver/adapters/go"
)

// question is what the proxy reads of a request, and changes; all else passes as it is.
type question struct {
	model      string
	stream     bool
	tellsAll   bool   // the client has asked for usage at the end of a stream
	prompt     int64  // an estimate of its tokens
	maxTokens  int64  // of an answer
	mostTokens int64  // of all
	body       []byte // as it is sent on
}

const (
	maxBody          = 1 << 20
	maxAnswer        = 64 << 20
	bytesPerToken    = 4
	mostTokens       = 1_000_000
	defaultMaxTokens = 1_000 // for who gives none: without a bound there is nothing to hold
)

func readQuestion(body []byte) (q question, err error) {
	var all, options fields
	var n, maxCompletionTokens int64
	if err = json.Unmarshal(body, &all); err == nil {
		err = all.read(map[string]any{
			"model": &q.model, "n": &n, "stream": &q.stream, "stream_options": &options,
			"max_tokens": &q.maxTokens, "max_completion_tokens": &maxCompletionTokens,
		})
	}
	if err == nil {
		err = options.read(map[string]any{"include_usage": &q.tellsAll})
	}
	if err != nil {
		return q, err
	}
	if _, _, ok := prices(q.model); !ok {
		return q, fmt.Errorf("no such model: %q", q.model)
	}
	q.prompt = 1 + int64(len(all["messages"]))/bytesPerToken
	q.maxTokens = max(q.maxTokens, maxCompletionTokens)
	if q.maxTokens <= 0 {
		q.maxTokens = defaultMaxTokens
		all.write("max_tokens", q.maxTokens)
	}
	if q.stream {
		if options == nil {
			options = fields{}
		}
		options.write("include_usage", true)
		all.write("stream_options", options)
	}
	q.mostTokens = q.maxTokens * max(1, n)
	if max(q.maxTokens, n, q.mostTokens) > mostTokens {
		return q, fmt.Errorf("an answer has at most %d tokens", mostTokens)
	}
	q.body, err = json.Marshal(all)
	return q, err
}

// fields are those of an object.
type fields map[string]json.RawMessage

// read reads fields by their exact names. It refuses other spellings, which the model may take for them.
func (f fields) read(into map[string]any) error {
	for name, text := range f {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return fmt.Errorf("no such field: %.50q", name)
		}
		if to, ok := into[name]; ok {
			if err := json.Unmarshal(text, to); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func (f fields) write(name string, value any) { f[name], _ = json.Marshal(value) }

type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
}

// isSane reports whether a model may say so.
func (u usage) isSane() bool {
	const most = 1_000_000_000
	return min(u.PromptTokens, u.CompletionTokens) >= 0 && max(u.PromptTokens, u.CompletionTokens) <= most
}

// told reports whether a model has said so.
func (u usage) told() bool { return u.isSane() && u != usage{} }

// prices returns dollars for a million tokens. Only what has a price is a model, as a client that makes
// up names would have a new budget with each.
func prices(model string) (in, out float64, ok bool) {
	switch model {
	case "small":
		return 0.5, 2, true
	case "large":
		return 5, 20, true
	}
	return 0, 0, false
}

// units are what an answer costs, for each of the proxy's uses.
func (u usage) units(model string) []int64 {
	const million = 1e6
	in, out, _ := prices(model)
	tokens := u.PromptTokens + u.CompletionTokens
	spend := cellserver.USD((float64(u.PromptTokens)*in + float64(u.CompletionTokens)*out) / million)
	return []int64{tokens, tokens, tokens, spend}
}

// event is a chunk of a streamed answer.
type event struct {
	line    []byte
	Usage   usage             `json:"usage"`
	Choices []json.RawMessage `json:"choices"`
}

// events yields the events of a stream to its [DONE]. A stream without that has failed.
func events(body io.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxBody)
		for lines.Scan() {
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
			if !ok {
				continue
			}
			e := event{line: bytes.Clone(lines.Bytes())}
			if string(bytes.TrimSpace(data)) == "[DONE]" {
				yield(e, nil)
				return
			}
			if err := json.Unmarshal(data, &e); err != nil {
				yield(event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		err := lines.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		yield(event{}, err)
	}
}

// headers tells a client what is left, of the tokens that are the scarcest.
func headers(h http.Header, results []cellserver.Result) {
	const near = 0.8
	var scarcest *cellserver.Result
	nearby := []string{}
	for i := range results {
		r := &results[i]
		if r.Near(near) {
			nearby = append(nearby, strconv.Quote(r.Name))
		}
		if strings.HasSuffix(r.Name, "-tokens") && (scarcest == nil || r.Remaining < scarcest.Remaining) {
			scarcest = r
		}
	}
	if scarcest != nil {
		h.Set("X-Ratelimit-Limit-Tokens", strconv.FormatInt(scarcest.Limit, 10))
		h.Set("X-Ratelimit-Remaining-Tokens", strconv.FormatInt(scarcest.Remaining, 10))
		h.Set("X-Ratelimit-Reset-Tokens", scarcest.ResetAfter.String())
	}
	if len(nearby) > 0 {
		h.Set("X-Ratelimit-Near", strings.Join(nearby, ", "))
	}
}

// deny answers by the budget that denies longest.
func deny(w http.ResponseWriter, uses []cellserver.Use, results []cellserver.Result) {
	var use cellserver.Use
	var by *cellserver.Result
	for i := range results {
		if r := &results[i]; !r.Allowed && (by == nil || r.RetryAfter < 0 || by.RetryAfter >= 0 && r.RetryAfter > by.RetryAfter) {
			by, use = r, uses[i]
		}
	}
	text := fmt.Sprintf("the limit %q has %d of %d units left for %q, and this call needs %d",
		by.Name, by.Remaining, by.Limit, use.Key, use.Units)
	if by.RetryAfter >= 0 {
		seconds := int64((by.RetryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		text += fmt.Sprintf("; try again in %d s", seconds)
	}
	fail(w, http.StatusTooManyRequests, "rate_limit_exceeded", text)
}

// fail answers with an error as OpenAI's.
func fail(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(failure(code, text))
}

func failure(code, text string) []byte {
	kind := "server_error"
	switch code {
	case "rate_limit_exceeded":
		kind = "tokens"
	case "invalid_request", "invalid_api_key":
		kind = "invalid_request_error"
	}
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": text, "type": kind, "code": code, "param": nil}})
	return append(b, '\n')
}
