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
	model   string        // its server
	ttl     time.Duration // of a hold, and of the patience with the model and with clients
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
	client := http.NewResponseController(w)
	_ = client.SetReadDeadline(time.Now().Add(p.ttl))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "invalid_request", err.Error())
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	q, err := readQuestion(body)
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request", err.Error())
		return
	}
	h := p.hold(r.Context(), w, who, q)
	if h == nil {
		return
	}
	// Who hangs up is charged for what the model has answered, so it is read to its usage.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	patience := time.AfterFunc(p.ttl, cancel)
	defer patience.Stop()
	heard := func() {
		if r.Context().Err() == nil {
			patience.Reset(p.ttl)
			_ = client.SetWriteDeadline(time.Now().Add(p.ttl))
		}
	}
	defer h.Keep(ctx)()
	if counted, known := p.forward(ctx, w, q, h, heard); !known {
		go p.settleByRecord(ctx, h, q.model, counted) // the client does not wait for it
		return
	}
	h.Close()
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
			log.Print("the journal: ", err)
			warn(h.Cancel(ctx))
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

// forward answers, and settles what the model says that it has used. Otherwise it returns what was counted.
// It calls heard for each part of the answer.
func (p *proxy) forward(
	ctx context.Context, w http.ResponseWriter, q question, h *cellserver.Hold, heard func(),
) (counted usage, known bool) {
	response, err := p.ask(ctx, q, h.ID())
	if err != nil {
		fail(w, http.StatusBadGateway, "server_error", "the model does not answer")
		network := (*net.OpError)(nil)
		if known = errors.As(err, &network) && network.Op == "dial"; known {
			warn(h.Cancel(ctx))
		}
		return usage{}, known
	}
	defer func() { _ = response.Body.Close() }()
	heard()
	status, body := response.StatusCode, io.LimitReader(response.Body, maxAnswer)
	switch {
	case status == http.StatusOK && q.stream:
		return stream(ctx, w, q, h, body, heard)
	case status == http.StatusOK:
		return usage{}, whole(ctx, w, q, h, body)
	}
	warn(h.Cancel(ctx))
	if status < http.StatusBadRequest || status >= http.StatusInternalServerError {
		fail(w, http.StatusBadGateway, "server_error", "the model has failed")
		return usage{}, true
	}
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(status)
	_, _ = io.Copy(w, body)
	return usage{}, true
}

// ask sends the question under the hold's id, by which the model's record can be found.
func (p *proxy) ask(ctx context.Context, q question, id string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.model+"/v1/chat/completions", bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Client-Request-Id", id)
	return http.DefaultClient.Do(request)
}

func whole(ctx context.Context, w http.ResponseWriter, q question, h *cellserver.Hold, from io.Reader) (known bool) {
	body, err := io.ReadAll(from)
	var answer struct {
		Usage usage `json:"usage"`
	}
	if err != nil || json.Unmarshal(body, &answer) != nil || !answer.Usage.told() {
		fail(w, http.StatusBadGateway, "server_error", "the model has failed")
		return false
	}
	warn(h.Settle(ctx, answer.Usage.units(q.model)...))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
	return true
}

// stream passes events on. A model that tells no usage is charged by its events, a token each.
func stream(
	ctx context.Context, w http.ResponseWriter, q question, h *cellserver.Hold, from io.Reader, heard func(),
) (counted usage, known bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	client := http.NewResponseController(w)
	for e, err := range events(from) {
		heard()
		if err != nil {
			_, _ = fmt.Fprintf(w, "data: %s\n", failure("server_error", "the model has failed"))
			if !known {
				return counted, false
			}
			break
		}
		switch {
		case e.Usage.told():
			counted, known = e.Usage, true
		case !known && len(e.Choices) > 0:
			counted.PromptTokens = q.prompt
			counted.CompletionTokens += int64(len(e.Choices))
		}
		if e.Usage.told() && len(e.Choices) == 0 && !q.tellsAll {
			continue
		}
		_, _ = w.Write(append(e.line, "\n\n"...)) // an error is a client's that has hung up
		_ = client.Flush()
	}
	warn(h.Settle(ctx, counted.units(q.model)...))
	return counted, true
}

func warn(err error) {
	if err != nil {
		log.Print("not settled: ", err)
	}
}
