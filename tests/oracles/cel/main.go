// Compiles and evaluates expressions in the environment of kube-apiserver 1.32: each line of the input is an expression
// as a JSON string, each line of the output its value, its failure and its cost. The argument is a file with the data.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type answer struct {
	Refused string `json:"refused,omitempty"`
	Failed  string `json:"failed,omitempty"`
	Value   any    `json:"value"`
	Cost    uint64 `json:"cost"`
}

func main() {
	env := environmentOf132()
	data := read(os.Args[1])
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var source string
		if err := json.Unmarshal(in.Bytes(), &source); err != nil {
			panic(err)
		}
		line, err := json.Marshal(evaluated(env, source, data))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
}

func environmentOf132() *cel.Env {
	base := environment.MustBaseEnvSet(version.MajorMinor(1, 32), true)
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("i", cel.IntType),
			cel.Variable("s", cel.StringType),
			cel.Variable("l", cel.ListType(cel.IntType)),
			cel.Variable("m", cel.MapType(cel.StringType, cel.IntType)),
			cel.Variable("b", cel.BoolType),
			cel.Variable("d", cel.DoubleType),
			cel.Variable("t", cel.ListType(cel.StringType)),
		},
	})
	if err != nil {
		panic(err)
	}
	env, err := set.Env(environment.NewExpressions)
	if err != nil {
		panic(err)
	}
	return env
}

// read gives the variables, whose integers JSON would make floats.
func read(path string) map[string]any {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	var data struct {
		I int64
		S string
		L []int64
		M map[string]int64
		B bool
		D float64
		T []string
	}
	if err := json.Unmarshal(text, &data); err != nil {
		panic(err)
	}
	return map[string]any{
		"i": data.I, "s": data.S, "l": data.L, "m": data.M, "b": data.B, "d": data.D, "t": data.T,
	}
}

func evaluated(env *cel.Env, source string, data map[string]any) answer {
	ast, issues := env.Compile(source)
	if issues != nil && issues.Err() != nil {
		return answer{Refused: issues.Err().Error()}
	}
	program, err := env.Program(ast, cel.CostLimit(1000000), cel.CostTracking(&library.CostEstimator{}))
	if err != nil {
		return answer{Refused: err.Error()}
	}
	value, details, err := program.Eval(data)
	made := answer{}
	if details != nil && details.ActualCost() != nil {
		made.Cost = *details.ActualCost()
	}
	if err != nil {
		made.Failed = err.Error()
		return made
	}
	made.Value = plain(value)
	return made
}

// plain writes a value with its type where JSON would lose it.
func plain(value ref.Val) any {
	switch v := value.(type) {
	case types.Int:
		return map[string]any{"int": fmt.Sprint(int64(v))}
	case types.Uint:
		return map[string]any{"uint": fmt.Sprint(uint64(v))}
	case types.Double:
		if math.IsNaN(float64(v)) {
			return map[string]any{"double": "nan"}
		}
		return map[string]any{"double": fmt.Sprintf("%016x", math.Float64bits(float64(v)))}
	case types.Bool, types.String:
		return v.Value()
	case traits.Lister:
		items := []any{}
		for each := v.Iterator(); each.HasNext() == types.True; {
			items = append(items, plain(each.Next()))
		}
		return items
	}
	return map[string]any{"other": fmt.Sprint(value.Value())}
}
