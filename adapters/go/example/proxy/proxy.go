package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	cellserver "cellserver/adapters/go"
)

type proxy struct {
	limiter *cellserver.Limiter
	journal *journal
	callers map[string]caller
	model   string // its server
	ttl     time.Duration
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, ok := p.callers[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case !ok:
		fail(w, http.StatusUnauthorized, "invalid_api_key", "no such key")
		return
	case r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions":
		fail(w, http.StatusNotFound, "invalid_request", "there is POST /v1/chat/completions")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	q, err := readQuestion(body)
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request", err.Error())
		return
	}
	h := p.hold(r.Context(), w, who, q)
	if h == nil {
		return
	}
	defer h.Close()
	// Who hangs up is charged for what the model has answered, so it is read to its usage.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(r.Context(), func() { time.AfterFunc(p.ttl, cancel) })()
	p.forward(ctx, w, q, h)
}

// hold holds the most that an answer may cost, and writes down that it does. It returns nil for a request
// that it has answered.
func (p *proxy) hold(ctx context.Context, w http.ResponseWriter, who caller, q question) *cellserver.Hold {
	most := usage{PromptTokens: q.prompt, CompletionTokens: q.mostTokens}.units(q.model)
	uses := []cellserver.Use{
		{Limit: "org-tokens", Key: who.org, Units: most[0]},
		{Limit: "user-tokens", Key: who.org + "/" + who.user, Units: most[1]},
		{Limit: "model-tokens", Key: who.org + "/" + q.model, Units: most[2]},
		{Limit: "org-spend", Key: who.org, Units: most[3]},
	}
	h, err := p.limiter.Hold(ctx, p.ttl, uses...)
	if err == nil && h.Allowed {
		if err = p.journal.write(entry{ID: h.ID(), Model: q.model, Uses: uses, Counted: h.Counted()}); err != nil {
			_ = h.Cancel(ctx)
		}
	}
	switch {
	case errors.Is(err, cellserver.ErrMisconfigured):
		fail(w, http.StatusInternalServerError, "server_error", "the budgets are misconfigured")
	case err != nil:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, "server_error", "the budgets are unavailable")
	case !h.Allowed:
		headers(w.Header(), h.Results)
		deny(w, uses, h.Results)
	default:
		headers(w.Header(), h.Results)
		return h
	}
	return nil
}

// forward asks the model, by the hold's id, so that its record can be found by that.
func (p *proxy) forward(ctx context.Context, w http.ResponseWriter, q question, h *cellserver.Hold) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.model+"/v1/chat/completions", bytes.NewReader(q.body))
	if err != nil {
		_ = h.Cancel(ctx)
		fail(w, http.StatusInternalServerError, "server_error", err.Error())
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Client-Request-Id", h.ID())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fail(w, http.StatusBadGateway, "server_error", "the model does not answer")
		_ = http.NewResponseController(w).Flush()
		if network := (*net.OpError)(nil); errors.As(err, &network) && network.Op == "dial" {
			warn(h.Cancel(ctx))
		} else {
			p.settleByRecord(ctx, h, q.model)
		}
		return
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		warn(h.Cancel(ctx))
		fail(w, http.StatusBadGateway, "server_error", "the model has failed")
	case response.StatusCode != http.StatusOK:
		warn(h.Cancel(ctx))
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	case q.stream:
		p.stream(ctx, w, q, h, response.Body)
	default:
		p.whole(ctx, w, q, h, response.Body)
	}
}

func (p *proxy) whole(ctx context.Context, w http.ResponseWriter, q question, h *cellserver.Hold, from io.Reader) {
	body, err := io.ReadAll(from)
	var answer struct {
		Usage *usage `json:"usage"`
	}
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil || answer.Usage == nil {
		fail(w, http.StatusBadGateway, "server_error", "the model has failed")
		_ = http.NewResponseController(w).Flush()
		p.settleByRecord(ctx, h, q.model)
		return
	}
	warn(h.Settle(ctx, answer.Usage.units(q.model)...))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func (p *proxy) stream(ctx context.Context, w http.ResponseWriter, q question, h *cellserver.Hold, from io.Reader) {
	w.Header().Set("Content-Type", "text/event-stream")
	// What is counted matters if the model fails and does not tell afterwards what it has charged for.
	counted := usage{PromptTokens: q.prompt}
	count := func(e event) []int64 {
		before := counted.units(q.model)
		if counted.CompletionTokens == 0 {
			before = make([]int64, len(before))
		}
		counted.CompletionTokens += int64(len(e.Choices))
		units := counted.units(q.model)
		for i := range units {
			units[i] -= before[i]
		}
		return units
	}
	out := http.NewResponseController(w)
	for e, err := range cellserver.Stream(ctx, h, events(from), count) {
		if err != nil {
			_, _ = fmt.Fprintf(w, "data: %s\n", failure("server_error", "the model has failed"))
			_ = out.Flush()
			p.settleByRecord(ctx, h, q.model)
			return
		}
		if e.Usage != nil {
			warn(h.Settle(ctx, e.Usage.units(q.model)...))
			if len(e.Choices) == 0 && !q.tellsAll {
				continue
			}
		}
		_, _ = w.Write(append(e.line, "\n\n"...)) // an error is a client's that has hung up
		_ = out.Flush()
	}
}

func warn(err error) {
	if err != nil {
		log.Print("not settled: ", err)
	}
}
