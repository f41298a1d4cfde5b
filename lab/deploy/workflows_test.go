package deploytest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func workflowFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows (%v)", err)
	}
	return files
}

// workflow is the part of a workflow that the tests read.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Concurrency struct {
		Group string `json:"group"`
	} `json:"concurrency"`
	Jobs map[string]struct {
		Uses        string            `json:"uses"`
		Permissions map[string]string `json:"permissions"`
		Minutes     int               `json:"timeout-minutes"`
		Steps       []struct {
			Uses string         `json:"uses"`
			Run  string         `json:"run"`
			With map[string]any `json:"with"`
		} `json:"steps"`
	} `json:"jobs"`
}

// TestWorkflowsAreCareful checks that actions are pinned to commits, that jobs have minimal rights and a
// timeout, that no token stays in the checkout, and that no script contains data of an event.
func TestWorkflowsAreCareful(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^\s*-?\s*uses: (\./\S+|\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	for _, path := range workflowFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "uses: ") && !pinned.MatchString(strings.TrimRight(line, "\n")) {
				t.Errorf("%s: not pinned: %s", name, line)
			}
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatal(err)
		}
		if w.Permissions == nil || len(w.Permissions) > 0 || w.Concurrency.Group == "" {
			t.Errorf("%s: rights for all jobs, or runs beside itself", name)
		}
		for job, j := range w.Jobs {
			if len(j.Permissions) == 0 || j.Minutes == 0 && j.Uses == "" {
				t.Errorf("%s: %s has no rights or no end", name, job)
			}
			for _, step := range j.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: %s keeps the token", name, job)
				}
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: %s: a script with an expression: %s", name, job, step.Run)
				}
			}
		}
	}
}

// TestDependabotKnowsAllModules checks that updates are proposed for every dependency file.
func TestDependabotKnowsAllModules(t *testing.T) {
	t.Parallel()
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directory   string   `json:"directory"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, u := range config.Updates {
		for _, dir := range append(u.Directories, u.Directory) {
			known[u.Ecosystem+" "+dir] = true
		}
	}
	ecosystems := map[string]string{"go.mod": "gomod", "package.json": "npm", "Dockerfile": "docker", "compose.yaml": "docker-compose"}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if err == nil && slices.Contains([]string{".git", "node_modules", "testdata"}, e.Name()) {
				return filepath.SkipDir
			}
			return err
		}
		if ecosystem, ok := ecosystems[e.Name()]; ok {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if want := ecosystem + " " + filepath.Join("/", dir); err != nil || !known[want] {
				t.Errorf("dependabot.yml has no %s (%v)", want, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestIssueForms checks that each part of a form has what its type requires, without which GitHub shows none.
func TestIssueForms(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bug", "feature"} {
		var form struct {
			Name        string   `json:"name"`
			Description string   `json:"description"`
			Labels      []string `json:"labels"`
			Body        []struct {
				Type        string          `json:"type"`
				ID          string          `json:"id"`
				Attributes  map[string]any  `json:"attributes"`
				Validations map[string]bool `json:"validations"`
			} `json:"body"`
		}
		if err := yaml.UnmarshalStrict([]byte(read(t, ".github/ISSUE_TEMPLATE/"+name+".yml")), &form); err != nil {
			t.Fatal(err)
		}
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s: %+v", name, form)
		}
		ids := map[string]bool{}
		for _, part := range form.Body {
			needs, ok := map[string][]string{
				"markdown": {"value"}, "dropdown": {"label", "options"}, "input": {"label"}, "textarea": {"label"},
			}[part.Type]
			for _, need := range needs {
				ok = ok && part.Attributes[need] != nil
			}
			if !ok || part.Type != "markdown" && (part.ID == "" || ids[part.ID]) {
				t.Errorf("%s: a part of an unknown type, or without a label, its text, or an id of its own: %+v", name, part)
			}
			ids[part.ID] = true
		}
	}
}
