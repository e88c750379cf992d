# SPDX-License-Identifier: Apache-2.0
"""Modules, classes and values that stand for what an engine imports and this Python has not got: they answer everything
with nothing. scripts/engine_parser.py uses them."""
import importlib.abc
import importlib.machinery
import inspect
import re
import sys
import types
import typing

FAILED = {}  # files of the engine that could not be imported, and why
WORLD = {}  # dotted name -> what it is, in place of nothing
ABSENT = {"torch_npu", "torch_musa", "torchada", "torch_xla", "torch_mlu", "mlx", "habana_frameworks", "intel_extension_for_pytorch",
          "sgl_kernel_npu", "tpu_inference", "_winapi", "msvcrt", "winreg", "org", "java",
          "torch.npu", "torch.xpu", "torch.hpu", "torch.musa", "torch.mlu", "torch.xla"}  # of other machines


class AnyClass(type):
    """Classes that are not there: they can be base classes, annotations, and be asked for attributes."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing(f"{cls.__module__}.{cls.__name__}.{name}")

    def __or__(cls, other):
        return typing.Union[cls, other]

    __ror__ = __or__

    def __getitem__(cls, item):
        return cls

    def __iter__(cls):
        return iter(())


class Nothing:
    """A value that is not there: false, empty, and callable; as a decorator it leaves what it is put on."""

    def __init__(self, *path, **_):
        object.__setattr__(self, "_path", path[0] if path and isinstance(path[0], str) else type(self).__name__)

    def __init_subclass__(cls, **_):
        pass

    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema  # only asked for by pydantic
        return core_schema.any_schema()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return nothing(f"{self._path}.{name}")

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and (inspect.isfunction(args[0]) or inspect.isclass(args[0])):
            return args[0]
        return nothing(self._path + "()")

    def __mro_entries__(self, bases):
        return ()

    def __bool__(self):
        return False

    def __len__(self):
        return 0

    def __iter__(self):
        return iter(())

    def __contains__(self, item):
        return False

    def __getitem__(self, item):
        return nothing(self._path + "[]")

    def __setitem__(self, item, value):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def __int__(self):
        return 0

    __index__ = __int__

    def __float__(self):
        return 0.0

    def __hash__(self):
        return hash(self._path)

    def __eq__(self, other):
        return self is other

    def __lt__(self, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __repr__(self):
        return f"<{self._path}>"


for _operator in "add radd sub rsub mul rmul truediv rtruediv floordiv mod rmod and rand or ror xor neg pow".split():
    setattr(Nothing, f"__{_operator}__", lambda self, *others: self)


def nothing(path):
    if path in WORLD:
        return WORLD[path]
    if path in ABSENT:
        raise AttributeError(path)
    name = path.rsplit(".", 1)[-1]
    if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name):  # CamelCase: a class
        WORLD[path] = AnyClass(name, (Nothing,), {"__module__": path.rpartition(".")[0]})
        return WORLD[path]
    return Nothing(path)


class MissingModule(types.ModuleType):
    def __call__(self, *args, **kwargs):
        return Nothing(self.__name__)(*args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__version__",):
            raise AttributeError(name)
        if name == "__version__":
            return "99.0.0"
        return nothing(f"{self.__name__}.{name}")


class MissingLoader(importlib.abc.Loader):
    def create_module(self, spec):
        module = MissingModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


class MissingFinder(importlib.abc.MetaPathFinder):
    """Asked last: whatever no one has is nothing."""

    def __init__(self, package):
        self.package = package
        self.missing = set()

    def asked_by_the_engine(self):
        """A library that asks for what it can do without is told the truth."""
        frame = sys._getframe(2)
        while frame is not None and ("importlib" in frame.f_code.co_filename or frame.f_globals.get("__name__") == __name__):
            frame = frame.f_back
        asks = frame.f_globals.get("__name__", "") if frame is not None else ""
        return asks.split(".")[0] == self.package

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.builtin_module_names or name.split(".")[0] in ABSENT or name in ABSENT:
            return None
        if not self.asked_by_the_engine():
            return None
        parent = sys.modules.get(name.rpartition(".")[0])
        if parent is not None and not isinstance(parent, MissingModule) and name.split(".")[0] != self.package:
            return None  # a part that a module which is there has not got
        self.missing.add(name if name.split(".")[0] == self.package else name.split(".")[0])
        return importlib.machinery.ModuleSpec(name, MissingLoader(), is_package=True)


class ForgivingLoader(importlib.abc.Loader):
    """Of a file of the engine: what cannot be imported without the rest becomes nothing, and is written down."""

    def __init__(self, loader, failed):
        self.loader = loader
        self.failed = failed

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        try:
            self.loader.exec_module(module)
        except Exception as error:
            self.failed[module.__name__] = f"{type(error).__name__}: {error}"
            kept = {k: v for k, v in vars(module).items() if k.startswith("__")}
            module.__dict__.clear()
            module.__dict__.update(kept)
            module.__class__ = MissingModule

    def __getattr__(self, name):
        return getattr(self.loader, name)


class ForgivingFinder(importlib.abc.MetaPathFinder):
    def __init__(self, package):
        self.package = package
        self.failed = FAILED

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] != self.package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = ForgivingLoader(spec.loader, self.failed)
        return spec
