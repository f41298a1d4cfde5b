// Model is a small server with the shape of OpenAI's chat completions, for the example and its tests. It
// answers with words that mean nothing, fails on request, and keeps a ledger of what it has charged for.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
}

// completion is a line of the ledger. A call that fails is charged for the tokens that it had sent.
type completion struct {
	ID     string `json:"id"`
	Model  string `json:"model"`
	User   string `json:"user,omitempty"` // as the caller says
	Status string `json:"status"`         // in_progress, completed, failed or cancelled
	Usage  usage  `json:"usage"`
}

type request struct {
	Model     string `json:"model"`
	User      string `json:"user"`
	MaxTokens int64  `json:"max_tokens"`
	Stream    bool   `json:"stream"`
	Messages  []struct {
		Content string `json:"content"`
	} `json:"messages"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type model struct {
	seed  uint64
	fails float64       // share of the calls: half of them at once, half in the middle
	delay time.Duration // of each token

	mu     sync.Mutex // guards ledger
	ledger map[string]*completion
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8001", "address to listen on")
	m := &model{ledger: map[string]*completion{}}
	flag.Uint64Var(&m.seed, "seed", 1, "of the answers: the same question has the same one")
	flag.Float64Var(&m.fails, "fail", 0, "share of the calls that fail")
	flag.DurationVar(&m.delay, "delay", 10*time.Millisecond, "of each token")
	flag.Parse()
	log.Fatal(http.ListenAndServe(*addr, m.handler()))
}

func (m *model) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.complete)
	mux.HandleFunc("GET /v1/chat/completions/{id}", func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		c, ok := m.ledger[r.PathValue("id")]
		if !ok {
			http.Error(w, `{"error":{"message":"no such completion"}}`, http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(c)
	})
	mux.HandleFunc("GET /ledger", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		_ = json.NewEncoder(w).Encode(m.ledger)
	})
	return mux
}

// plan is what becomes of a question.
type plan struct {
	prompt, tokens int64
	failsAt        int64 // the token before which it fails; -1 is never
}

func (m *model) plan(q *request) plan {
	p := plan{failsAt: -1}
	if q.MaxTokens == 0 {
		q.MaxTokens = 16
	}
	hash := fnv.New64a()
	for _, message := range q.Messages {
		_, _ = hash.Write([]byte(message.Content))
		p.prompt += int64(len(message.Content))/3 + 1
	}
	rng := rand.New(rand.NewPCG(m.seed, hash.Sum64()))
	p.tokens = 1 + rng.Int64N(max(1, q.MaxTokens))
	if rng.Float64() < m.fails {
		p.failsAt = p.tokens / 2 * rng.Int64N(2)
	}
	return p
}

func (m *model) complete(w http.ResponseWriter, r *http.Request) {
	q := new(request)
	if err := json.NewDecoder(r.Body).Decode(q); err != nil || len(q.Messages) == 0 || q.MaxTokens < 0 {
		http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
		return
	}
	p := m.plan(q)
	if p.failsAt == 0 {
		m.start(r, q, "failed", 0)
		http.Error(w, `{"error":{"message":"the model has a headache"}}`, http.StatusInternalServerError)
		return
	}
	id := m.start(r, q, "in_progress", p.prompt)
	text := ""
	for n := range p.tokens {
		if n == p.failsAt {
			m.end(id, "failed")
			panic(http.ErrAbortHandler) // closes the connection
		}
		select {
		case <-time.After(m.delay):
		case <-r.Context().Done(): // whoever has asked is gone
			m.end(id, "cancelled")
			return
		}
		word := fmt.Sprintf("word%d ", n)
		m.add(id)
		if text += word; q.Stream {
			event(w, map[string]any{"id": id, "model": q.Model, "choices": []any{
				map[string]any{"index": 0, "delta": map[string]any{"content": word}},
			}})
		}
	}
	c := m.end(id, "completed")
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": id, "model": q.Model, "usage": c.Usage, "choices": []any{map[string]any{
				"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text},
			}},
		})
		return
	}
	if q.StreamOptions.IncludeUsage {
		event(w, map[string]any{"id": id, "model": q.Model, "choices": []any{}, "usage": c.Usage})
	}
	_, _ = w.Write([]byte("data: [DONE]\n\n"))
}

func event(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "text/event-stream")
	b, _ := json.Marshal(v)
	_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
	w.(http.Flusher).Flush()
}

// start begins a line of the ledger, by the id that the caller has given.
func (m *model) start(r *http.Request, q *request, status string, prompt int64) (id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id = r.Header.Get("X-Client-Request-Id")
	if id == "" {
		id = fmt.Sprintf("chatcmpl-%d", len(m.ledger)+1)
	}
	m.ledger[id] = &completion{
		ID: id, Model: q.Model, User: q.User, Status: status, Usage: usage{PromptTokens: prompt, TotalTokens: prompt},
	}
	return id
}

func (m *model) add(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger[id].Usage.CompletionTokens++
	m.ledger[id].Usage.TotalTokens++
}

func (m *model) end(id, status string) completion {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger[id].Status = status
	return *m.ledger[id]
}
