// Answers questions on structured-merge-diff: each line of the input is a question in JSON, each line of the output its
// answer. The argument is a file with the OpenAPI schemas by name; "Thing" is the kind that is asked about.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
	"sigs.k8s.io/structured-merge-diff/v4/value"
)

const version = fieldpath.APIVersion("test.dev/v1")

type step struct {
	Manager string
	Object  json.RawMessage
	Force   bool
	Update  bool
}

type question struct {
	Op    string
	A, B  json.RawMessage
	Set   json.RawMessage
	Other json.RawMessage
	Steps []step
	Strip json.RawMessage
}

func main() {
	kind := read(os.Args[1])
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			panic(err)
		}
		line, err := json.Marshal(answer(kind, &q))
		if err != nil {
			panic(err)
		}
		out.Write(append(line, '\n'))
		out.Flush()
	}
}

// exact reads a value with numbers as the server has them: integers stay integers.
func exact(text json.RawMessage) any {
	read, err := value.FromJSON(text)
	if err != nil {
		panic(err)
	}
	return read.Unstructured()
}

func read(path string) typed.ParseableType {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	models := map[string]*spec.Schema{}
	if err := json.Unmarshal(text, &models); err != nil {
		panic(err)
	}
	made, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		panic(err)
	}
	return (&typed.Parser{Schema: *made}).Type("Thing")
}

func answer(kind typed.ParseableType, q *question) any {
	if q.Op == "sets" {
		a, b := set(q.Set), set(q.Other)
		return map[string]any{
			"union": shown(a.Union(b)), "intersection": shown(a.Intersection(b)),
			"difference": shown(a.Difference(b)), "recursive": shown(a.RecursiveDifference(b)),
		}
	}
	if q.Op == "steps" {
		return steps(kind, q)
	}
	a, err := kind.FromUnstructured(exact(q.A))
	if q.Op == "check" {
		return problem(err)
	}
	if err != nil {
		return problem(err)
	}
	if q.Op == "fields" {
		fields, err := a.ToFieldSet()
		if err != nil {
			return problem(err)
		}
		return shown(fields)
	}
	if q.Op == "remove" {
		return a.RemoveItems(set(q.Set)).AsValue().Unstructured()
	}
	b, err := kind.FromUnstructured(exact(q.B))
	if err != nil {
		return problem(err)
	}
	if q.Op == "merge" {
		merged, err := a.Merge(b)
		if err != nil {
			return problem(err)
		}
		return merged.AsValue().Unstructured()
	}
	changes, err := a.Compare(b)
	if err != nil {
		return problem(err)
	}
	return []any{shown(changes.Added), shown(changes.Modified), shown(changes.Removed)}
}

// sameVersion converts nothing: all managers write in one version.
type sameVersion struct{}

func (sameVersion) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}

func (sameVersion) IsMissingVersionError(error) bool { return false }

// steps writes one object by turns, as the server does. What nobody manages is taken from the sets after each.
func steps(kind typed.ParseableType, q *question) any {
	updater := (&merge.UpdaterBuilder{Converter: sameVersion{}}).BuildUpdater()
	strip := set(q.Strip)
	live, err := kind.FromUnstructured(exact(q.A))
	if err != nil {
		panic(err)
	}
	empty := live
	managers := fieldpath.ManagedFields{}
	answers := []any{}
	written := false
	for _, step := range q.Steps {
		object, err := kind.FromUnstructured(exact(step.Object))
		if err != nil {
			answers = append(answers, problem(err))
			continue
		}
		var after *typed.TypedValue
		var owned fieldpath.ManagedFields
		if step.Update && written && len(managers) == 0 { // the server does not begin to track an object that is there
			after, owned = object, managers
		} else if step.Update {
			after, owned, err = updater.Update(live, object, version, managers.Copy(), step.Manager)
		} else {
			before := managers.Copy()
			if len(before) == 0 { // what was there is said to be from before the first apply
				if _, before, err = updater.Update(empty, live, version, before, "before-first-apply"); err != nil {
					panic(err)
				}
			}
			after, owned, err = updater.Apply(live, object, version, before, step.Manager, step.Force)
		}
		if err != nil {
			answers = append(answers, problem(err))
			continue
		}
		written = true
		if after != nil {
			live = after
		}
		managers = fieldpath.ManagedFields{}
		sets := map[string]any{}
		for name, fields := range owned {
			rest := fields.Set().Difference(strip)
			if rest.Empty() {
				continue
			}
			managers[name] = fieldpath.NewVersionedSet(rest, fields.APIVersion(), fields.Applied())
			sets[name] = shown(rest)
		}
		answers = append(answers, map[string]any{"object": live.AsValue().Unstructured(), "managers": sets})
	}
	return answers
}

func problem(err error) any {
	switch failure := err.(type) {
	case nil:
		return nil
	case merge.Conflicts:
		found := []string{}
		for _, each := range failure {
			found = append(found, each.Manager+" "+each.Path.String())
		}
		return map[string]any{"conflicts": found}
	case typed.ValidationErrors:
		found := []string{}
		for _, each := range failure {
			found = append(found, strings.TrimPrefix(each.Error(), ": "))
		}
		return map[string]any{"problems": found}
	}
	return map[string]any{"problems": []string{fmt.Sprint(err)}}
}

func set(text json.RawMessage) *fieldpath.Set {
	made := &fieldpath.Set{}
	if len(text) == 0 {
		return made
	}
	if err := made.FromJSON(strings.NewReader(string(text))); err != nil {
		panic(err)
	}
	return made
}

func shown(fields *fieldpath.Set) json.RawMessage {
	text, err := fields.ToJSON()
	if err != nil {
		panic(err)
	}
	return text
}
