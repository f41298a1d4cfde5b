package main

import (
	"fmt"
	"slices"
)

// program runs the libraries of a language.
type program struct {
	name  string
	dir   string
	needs []need
	build [][]string
	run   []string // nil for the replayed streams
}

// need is a command that succeeds if Debian packages are installed.
type need struct {
	packages string
	argv     []string
}

func programs() []program {
	python := "import django, django_redis, flask, flask_limiter"
	ruby := "require 'active_support/cache'; require 'rack/attack'; require 'redis'"
	return []program{
		{
			name: "go", dir: "libraries-go",
			build: [][]string{{"go", "build", "-o", "{out}", "."}}, run: []string{"{out}"},
		},
		{
			name: "node", dir: "libraries-node",
			needs: []need{{"nodejs", []string{"node", "--version"}}, {"npm", []string{"npm", "--version"}}},
			build: [][]string{{"npm", "ci", "--prefer-offline", "--ignore-scripts", "--loglevel=error"}},
			run:   []string{"node", "main.mjs"},
		},
		{
			name: "python", dir: "libraries-python",
			needs: []need{{"python3-flask-limiter python3-django-redis", []string{"/usr/bin/python3", "-c", python}}},
			run:   []string{"/usr/bin/python3", "main.py"}, // Debian's, which has Debian's packages
		},
		{
			name: "ruby", dir: "libraries-ruby",
			needs: []need{{"ruby-rack-attack ruby-activesupport ruby-redis", []string{"ruby", "-e", ruby}}},
			run:   []string{"ruby", "main.rb"},
		},
		{name: "replay"},
	}
}

func selected(names []string) (chosen []program, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(programs(), func(p program) bool { return p.name == name }) {
			return nil, fmt.Errorf("--only: there is no program %q", name)
		}
	}
	for _, p := range programs() {
		if len(names) == 0 || slices.Contains(names, p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

// library is what the page says of a library beside what is seen.
type library struct {
	name   string
	sends  string
	before string // what it did with cellserver 0.2, which had no values
	// refuses are the parts that keep what cellserver does not.
	refuses []string
	// endless are the parts that keep values without a time to live, which --require-ttl refuses.
	endless []string
	fails   string // what it does without a server, if its program does not show it
	choice  string // the settings for that
}

func libraryNamed(name string) (library, bool) {
	for _, l := range libraries() {
		if l.name == name {
			return l, true
		}
	}
	return library{}, false
}
