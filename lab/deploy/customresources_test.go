package deploytest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/envoyproxy/ai-gateway/api/v1alpha1" // its module has the CRDs
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// moduleDir returns the directory of a module that lab/go.mod requires: what others wrote is read there, and
// not copied.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	return strings.TrimSpace(run(t, filepath.Join(root, "lab"), "go", "list", "-m", "-f", "{{.Dir}}", module))
}

// customKind validates the objects of one kind and version as a cluster with its CRD does.
type customKind struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// customKinds returns makers of the kinds of Envoy Gateway, Gateway API and Envoy AI Gateway, by apiVersion
// and kind; to make one takes a second.
func customKinds(t *testing.T) map[string]func() *customKind {
	t.Helper()
	kinds := map[string]func() *customKind{}
	for module, pattern := range map[string]string{
		"github.com/envoyproxy/gateway":    "charts/gateway-helm/charts/crds/crds/generated/*.yaml",
		"sigs.k8s.io/gateway-api":          "config/crd/standard/*.yaml",
		"github.com/envoyproxy/ai-gateway": "manifests/charts/ai-gateway-crds-helm/templates/*.yaml",
	} {
		files, err := filepath.Glob(filepath.Join(moduleDir(t, module), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no CRDs: %v", module, err)
		}
		for _, file := range files {
			addKinds(t, file, kinds)
		}
	}
	return kinds
}

func addKinds(t *testing.T, file string, kinds map[string]func() *customKind) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents(b) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(document, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		for _, v := range crd.Spec.Versions {
			kinds[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = sync.OnceValue(func() *customKind {
				return kindOf(t, v.Schema.OpenAPIV3Schema)
			})
		}
	}
}

func kindOf(t *testing.T, given *apiextensionsv1.JSONSchemaProps) *customKind {
	t.Helper()
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(given, &props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	return &customKind{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// validateCustom validates an object of a kind that a CRD defines: unknown fields, defaults, its schema, and
// the rules in it.
func validateCustom(t *testing.T, kinds map[string]func() *customKind, document []byte) (errs field.ErrorList) {
	t.Helper()
	var object unstructured.Unstructured
	text, err := yaml.YAMLToJSONStrict(document)
	if err == nil {
		err = json.Unmarshal(text, &object.Object) // with integers, as a cluster has them
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	name := object.GetAPIVersion() + " " + object.GetKind()
	of := kinds[name]
	if of == nil {
		t.Fatalf("no CRD defines %s", name)
	}
	k := of()
	track := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object.Object, k.structural, true, track) {
		errs = append(errs, field.Invalid(field.NewPath(path), name, "unknown field"))
	}
	defaulting.Default(object.Object, k.structural)
	errs = append(errs, validation.ValidateCustomResource(nil, object.Object, k.schema)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object.Object)...)
	broken, _ := k.rules.Validate(t.Context(), nil, k.structural, object.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// documents splits a file of several objects, and leaves out what are only comments.
func documents(text []byte) (all [][]byte) {
	for _, d := range bytes.Split(append([]byte("\n"), text...), []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(d, &object); err != nil || len(object) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// gatewayObjects are the files of objects that CRDs define.
var gatewayObjects = []string{
	"deploy/envoy-gateway/gateway.yaml", "deploy/envoy-gateway/requests.yaml", "deploy/envoy-gateway/tokens.yaml",
	"deploy/envoy-ai-gateway/quota.yaml",
}

// TestGatewaysTakeTheirObjects checks each object against the CRD of its kind.
func TestGatewaysTakeTheirObjects(t *testing.T) {
	t.Parallel()
	kinds := customKinds(t)
	t.Run("mistakes", func(t *testing.T) { findMistakes(t, kinds) })
	for _, file := range gatewayObjects {
		for i, document := range documents([]byte(read(t, file))) {
			if errs := validateCustom(t, kinds, document); len(errs) > 0 {
				t.Errorf("%s, object %d: %v", file, i, errs.ToAggregate())
			}
		}
	}
}

// findMistakes checks the validation itself.
func findMistakes(t *testing.T, kinds map[string]func() *customKind) {
	t.Helper()
	for _, tt := range []struct{ file, old, new, want string }{
		{"deploy/envoy-gateway/requests.yaml", "limit: {requests: 600", "limits: {requests: 600", "unknown field"},
		{"deploy/envoy-gateway/requests.yaml", "unit: Minute", "unit: Fortnight", "Unsupported value"},
		{"deploy/envoy-gateway/requests.yaml", "kind: HTTPRoute", "kind: Service", "this policy can only have a targetRef"},
		{"deploy/envoy-gateway/tokens.yaml", "              metadata: {namespace: site, key: tokens}\n", "              number: 1\n              metadata: {namespace: site, key: tokens}\n", "only one of number or metadata"},
		{"deploy/envoy-ai-gateway/quota.yaml", "duration: 1d", "duration: 24h", "duration"},
	} {
		text := strings.Replace(read(t, tt.file), tt.old, tt.new, 1)
		var found []string
		for _, document := range documents([]byte(text)) {
			if errs := validateCustom(t, kinds, document); len(errs) > 0 {
				found = append(found, fmt.Sprint(errs.ToAggregate()))
			}
		}
		if !strings.Contains(strings.Join(found, "\n"), tt.want) {
			t.Errorf("%s: got %q, want %s", tt.new, found, tt.want)
		}
	}
}
