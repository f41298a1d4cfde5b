package main

import (
	"context"
	"crypto/sha1" //nolint:gosec // EVALSHA's
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// streamsDir has the streams: for each library that cannot be installed here a file with the commands that it
// sends. README.md describes them.
const streamsDir = "libraries/streams"

// stream is a part of a library's work as commands.
type stream struct {
	library, version, part string
	steps                  []step
	scripts                map[string]string
}

// step is a command, or a pause.
type step struct {
	words []string
	times int  // how often it is sent
	about bool // its reply has times, which are rounded up
	pause time.Duration
}

// replayAll sends the streams of a directory to a server. All times in them are relative to now.
func replayAll(ctx context.Context, dir, texts, address string, now time.Time) (all []seen, err error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	options.Protocol, options.PoolSize, options.MaxRetries = 2, 1, -1
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no streams in %s: %w", dir, errors.Join(err, os.ErrNotExist))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		streams, err := parseStreams(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, s := range streams {
			if err := s.exchange(texts); err != nil {
				return nil, err
			}
			all = append(all, s.replay(ctx, client, now))
		}
	}
	return all, nil
}

// exchange replaces scripts by the files of the same names in a directory, as far as it has them.
func (s *stream) exchange(dir string) error {
	if dir == "" {
		return nil
	}
	for name := range s.scripts {
		text, err := os.ReadFile(filepath.Join(dir, name+".lua"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("replay %s: %w", s.library, err)
		}
		s.scripts[name] = string(text)
	}
	return nil
}

// replay sends the commands, and ends at the first error that is not NOSCRIPT, which libraries expect.
func (s *stream) replay(ctx context.Context, client *redis.Client, now time.Time) seen {
	saw := seen{Library: s.library, Version: s.version, Part: s.part}
	for _, st := range s.steps {
		time.Sleep(st.pause)
		for range st.times {
			words := make([]any, len(st.words))
			for i, word := range st.words {
				words[i] = s.expand(word, now)
			}
			reply, err := client.Do(ctx, words...).Result()
			if err != nil && !errors.Is(err, redis.Nil) && !strings.HasPrefix(err.Error(), "NOSCRIPT") {
				saw.Error = err.Error()
				return saw
			}
			if err != nil {
				reply = err
			}
			saw.Saw = append(saw.Saw, st.words[0]+": "+render(reply, st.about))
		}
	}
	return saw
}

// expand replaces a placeholder: {now}, {now-ms}, both also with +N or -N, {sha:script} and {script}; and a
// word in quotes, with Go's escapes. Anything else in braces is a hash tag of a key.
func (s *stream) expand(word string, now time.Time) string {
	if text, err := strconv.Unquote(word); err == nil {
		return text
	}
	if !strings.HasPrefix(word, "{") || !strings.HasSuffix(word, "}") {
		return word
	}
	name := word[1 : len(word)-1]
	if text, ok := s.scripts[name]; ok {
		return text
	}
	if script, ok := strings.CutPrefix(name, "sha:"); ok {
		sum := sha1.Sum([]byte(s.scripts[script])) //nolint:gosec // EVALSHA's
		return hex.EncodeToString(sum[:])
	}
	for prefix, unix := range map[string]int64{"now-ms": now.UnixMilli(), "now": now.Unix()} {
		if name == prefix {
			return strconv.FormatInt(unix, 10)
		}
		if offset, ok := strings.CutPrefix(name, prefix); ok {
			if n, err := strconv.ParseInt(offset, 10, 64); err == nil {
				return strconv.FormatInt(unix+n, 10)
			}
		}
	}
	return word
}

// rounded rounds a time up: seconds to minutes, and milliseconds to ten seconds. Less than ten is no time.
func rounded(n int64) int64 {
	const least, milliseconds = 10, 1000
	unit := int64(1)
	if n >= milliseconds {
		unit = 10_000
	} else if n >= least {
		unit = 60
	}
	return (n + unit - 1) / unit * unit
}

// render returns a reply as text. With about, its integers are rounded as times.
func render(reply any, about bool) string {
	switch r := reply.(type) {
	case nil:
		return "nil"
	case error:
		if errors.Is(r, redis.Nil) {
			return "nil"
		}
		return "(error) " + r.Error()
	case int64:
		if about {
			r = rounded(r)
		}
		return strconv.FormatInt(r, 10)
	case string:
		return strconv.Quote(r)
	case []any:
		words := make([]string, len(r))
		for i := range r {
			words[i] = render(r[i], about)
		}
		return "[" + strings.Join(words, " ") + "]"
	default:
		return fmt.Sprintf("%T %v", r, r)
	}
}

// parseStreams reads a file of streams.
func parseStreams(text string) (streams []stream, err error) {
	var library, version string
	scripts := map[string]string{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		word, rest, _ := strings.Cut(lines[i], " ")
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
		case word == "library":
			library, version, _ = strings.Cut(rest, ", ")
		case word == "script":
			end := slices.Index(lines[i:], "end script")
			if end < 0 {
				return nil, fmt.Errorf("line %d: script %s has no end", i+1, rest)
			}
			scripts[rest] = strings.Join(lines[i+1:i+end], "\n") + "\n"
			i += end
		case word == "part":
			streams = append(streams, stream{library: library, version: version, part: rest, scripts: scripts})
		case len(streams) == 0:
			return nil, fmt.Errorf("line %d: a command before the first part", i+1)
		default:
			st, err := parseStep(strings.Fields(lines[i]))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			last := &streams[len(streams)-1]
			last.steps = append(last.steps, st)
		}
	}
	return streams, nil
}

// parseStep reads a command, before it ~ and 4x in this order, or pause with a duration.
func parseStep(words []string) (st step, err error) {
	if len(words) == 2 && words[0] == "pause" {
		st.pause, err = time.ParseDuration(words[1])
		return st, err
	}
	if st.about = words[0] == "~"; st.about {
		words = words[1:]
	}
	st.times = 1
	if n, ok := strings.CutSuffix(words[0], "x"); ok {
		if st.times, err = strconv.Atoi(n); err != nil {
			return st, err
		}
		words = words[1:]
	}
	st.words = words
	return st, nil
}
