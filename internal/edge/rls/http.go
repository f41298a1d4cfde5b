package rls

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/wire/acl"
)

// NewHTTP returns what a door of HTTP serves under envoyproxy/ratelimit's paths: /healthcheck for anybody,
// and /json, which is a call with the rules of those over gRPC.
func NewHTTP(s *Service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthcheck":
			s.healthcheck(w, r)
		case "/json":
			s.json(w, r)
		default:
			end(w, r)
			http.NotFound(w, r)
		}
	})
}

// end closes a connection behind a body that is not read.
func end(w http.ResponseWriter, r *http.Request) {
	if door.LeavesBody(r) {
		w.Header().Set("Connection", "close")
	}
}

func (s *Service) healthcheck(w http.ResponseWriter, r *http.Request) {
	end(w, r)
	if s.Ready() != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "OK")
}

// Errors of /json and the debug port beside those of calls:
const (
	errLongBody requestError = "the body has more than 256 KiB"
	errNoJSON   requestError = "the body is no envoy.service.ratelimit.v3.RateLimitRequest in JSON"
)

var (
	errBody = errors.New("the body did not arrive")
	errPage = &door.RefusedError{Reason: "requests of web pages are refused"}
)

// json answers as envoyproxy/ratelimit does. It tells no client why it refuses a call, so the log does.
func (s *Service) json(w http.ResponseWriter, r *http.Request) {
	c := door.ConnOf(r)
	response, err := s.answerJSON(c, r)
	end(w, r)
	if err != nil {
		c.Problem("/json: " + err.Error())
		refuse(w, http.StatusBadRequest)
		return
	}
	text, err := protojson.Marshal(response)
	if err != nil {
		refuse(w, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if response.OverallCode == rlspb.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text) // a failure ends the connection
}

func refuse(w http.ResponseWriter, code int) { http.Error(w, http.StatusText(code), code) }

func (s *Service) answerJSON(c *door.Conn, r *http.Request) (*rlspb.RateLimitResponse, error) {
	user, err := s.admitHTTP(c, r)
	var body []byte
	if err == nil {
		body, err = bodyOf(r)
	}
	if err != nil {
		c.Count(door.OutcomeOf(codeOf(err)), c.Now())
		return nil, err
	}
	return s.answer(r.Context(), c, user, func() (*rlspb.RateLimitRequest, error) { return decodeJSON(body) })
}

// admitHTTP is admit for a request of HTTP.
func (s *Service) admitHTTP(c *door.Conn, r *http.Request) (*acl.User, error) {
	if err := c.Full(); err != nil {
		return nil, err
	}
	user, err := s.admitBy(c, r.Header.Get("Authorization"), func(token string) (*acl.User, error) { return c.User(r, token) })
	if err == nil && user == nil && isOfPage(r, c.Peer().LocalAddr) {
		return nil, errPage
	}
	return user, err
}

// isOfPage reports whether a browser may ask for a web page, which could else use it to reach a server that
// serves its machine: with the header of other sites, or under a name that its site has for this address.
func isOfPage(r *http.Request, local string) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if len(r.Header["Origin"]) > 0 || site == "cross-site" || site == "same-site" {
		return true
	}
	at, err := netip.ParseAddrPort(local)
	if err != nil || !at.Addr().Unmap().IsLoopback() || r.Host == "" {
		return false
	}
	name := r.Host
	if colon := strings.LastIndexByte(name, ':'); colon >= 0 && !strings.HasSuffix(name, "]") {
		name = name[:colon]
	}
	_, err = netip.ParseAddr(strings.Trim(name, "[]"))
	return err != nil && !strings.EqualFold(name, "localhost")
}

func bodyOf(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, door.MaxMessageBytes+1))
	switch {
	case err != nil:
		return nil, errBody
	case len(body) > door.MaxMessageBytes:
		return nil, errLongBody
	}
	return body, nil
}

// decodeJSON is message.decode for JSON.
func decodeJSON(text []byte) (*rlspb.RateLimitRequest, error) {
	if partsOfJSON(text) > maxFields {
		return nil, errManyFields
	}
	r := &rlspb.RateLimitRequest{}
	if protojson.Unmarshal(text, r) != nil {
		return nil, errNoJSON
	}
	if len(r.Descriptors) > maxDescriptors {
		return nil, errTooMany
	}
	entries := 0
	for _, d := range r.Descriptors {
		if entries += len(d.Entries); entries > maxEntries {
			return nil, errManyEntries
		}
	}
	return r, nil
}

// partsOfJSON returns about as many as there are fields, elements, objects and arrays.
func partsOfJSON(text []byte) (parts int) {
	inText := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && inText:
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{', c == '[', c == ',':
			parts++
		}
	}
	return parts
}
