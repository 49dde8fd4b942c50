"""The witness, told what product code did: one table. Runs in the image, whose interpreter it is made for.

Each row is a module of the product, a sealed module that uses it, and what must be told of them; an empty list is honest
work. `witness/drive.py` runs them.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = "/opt/tribunal/lib/tribunal_witness.so"
IMPORTS = "import lib\n"

# name, the product's module, the sealed module, what is told
TABLE: list[tuple[str, str, str, list[str]]] = [
    ('honest', "import json, re, dataclasses, enum, logging, functools, typing, collections\nlog=logging.getLogger('x')\nP=collections.namedtuple('P','a b')\n@dataclasses.dataclass\nclass A:\n  x:int\nclass E(enum.Enum):\n  a=1\ndef f(x): return json.loads(x)\n", "import lib\nassert lib.f('1')==1\nassert lib.A(1)==lib.A(1)\nimport sys\n", []),
    ('builtin', 'import builtins\nbuiltins.sum = lambda v: 0\n', IMPORTS, ['witness: builtins.sum replaced']),
    ('builtin back', 'import builtins\ns=builtins.sum\nbuiltins.sum = lambda v: 0\nbuiltins.sum=s\n', IMPORTS, ['witness: builtins.sum replaced']),
    ('setattr', "import json\nsetattr(json,'loads',lambda *a: 1)\n", IMPORTS, ['witness: json.loads replaced']),
    ('vars', "import json\nvars(json)['loads']=lambda *a: 1\n", IMPORTS, ['witness: json.loads replaced']),
    ('subkey', "import json\nclass S(str):pass\nvars(json)[S('loads')]=lambda *a: 1\n", IMPORTS, ['witness: json.loads replaced']),
    ('import star', 'def loads(): pass\n', 'from lib import *\nloads()\n', []),
    ('star takes a builtin', 'def sorted(v): pass\n', 'from lib import *\nsorted([])\n', ['witness: check.sorted added']),
    ('star takes a name', 'def want(): pass\n', 'def want(): return 1\nfrom lib import *\n', ['witness: check.want replaced']),
    ('code from elsewhere', 'import sys, tempfile, pathlib\nwhere=tempfile.mkdtemp()\npathlib.Path(where,"net.py").write_text("import json\\njson.loads=len\\n")\nsys.path.insert(0,where)\nimport net\n', IMPORTS, ['audit: code from outside src and its dependencies', 'witness: json.loads replaced']),
    ('del', 'import json\ndel json.loads\n', IMPORTS, ['witness: json.loads removed']),
    ('class', 'import json\njson.JSONDecoder.decode=lambda *a: 1\n', IMPORTS, ['witness: json.decoder.JSONDecoder.decode replaced']),
    ('class inherit', 'import unittest.mock\nunittest.mock.MagicMock.assert_called_once=lambda *a: 1\n', IMPORTS, ['witness: unittest.mock.MagicMock.assert_called_once added']),
    ('code', 'import json\njson.loads.__code__=(lambda *a: 1).__code__\n', IMPORTS, ['witness: code of json.loads replaced']),
    ('defaults', "import json\njson.loads.__kwdefaults__={'cls':int}\n", IMPORTS, ['witness: defaults of json.loads replaced']),
    ('mock from product', "import json\nfrom unittest import mock\nmock.patch.object(json,'loads').start()\n", IMPORTS, ['witness: json.loads replaced']),
    ('mock from sealed', '', "import json\nfrom unittest import mock\nwith mock.patch.object(json,'loads'): pass\nwith mock.patch('time.time', return_value=1): pass\n", []),
    ('partial called by sealed', "import json,functools\nf=functools.partial(setattr,json,'loads',lambda *a:1)\n", 'import lib\nlib.f()\n', ['witness: json.loads replaced']),
    ('thread', "import json,threading\nt=threading.Thread(target=setattr,args=(json,'loads',len));t.start();t.join()\n", IMPORTS, ['witness: json.loads replaced']),
    ('timer', "import json,threading\nthreading.Timer(0.01,setattr,args=(json,'loads',len)).start()\nimport time\n", 'import lib,time\ntime.sleep(0.1)\n', ['witness: json.loads replaced']),
    ('sealed globals', "import sys\ndef f(): sys._getframe(1).f_globals['want']=2\n", 'import lib\nwant=1\ndef t():\n  lib.f()\nt()\n', ['witness: check.want replaced']),
    ('sealed helper', "import sys\ndef f(): sys.modules['check'].helper=1\n", 'import lib\ndef helper(): pass\ndef t():\n  lib.f()\nt()\n', ['witness: check.helper replaced']),
    ('shadow builtin in sealed', "import sys\ndef f(): sys.modules['check'].len=lambda x:1\n", 'import lib\ndef t():\n  lib.f()\nt()\n', ['witness: check.len added']),
    ('locals read', "import sys\ndef f(): return sys._getframe(1).f_locals['want']\n", 'import lib\ndef t():\n  want=1\n  lib.f()\nt()\n', ['audit: f_locals of a frame that is not its own']),
    ('locals write', "import sys\ndef f(): sys._getframe(1).f_locals['want']=3\n", 'import lib\ndef t():\n  want=1\n  lib.f()\n  assert want==3\nt()\n', ['audit: f_locals of a frame that is not its own', 'witness: a local variable of another frame replaced']),
    ('own locals', "import sys\ndef f():\n  a=1\n  return locals(), sys._getframe().f_locals['a']\n", 'import lib\ndef t():\n  lib.f()\nt()\n', []),
    ('getframe honest', "import sys\ndef f(): fr=sys._getframe(1); return fr.f_code.co_name, fr.f_lineno, fr.f_globals['__name__']\n", "import lib\ndef t():\n  assert lib.f()[0]=='t'\nt()\n", []),
    ('gc', 'import gc\ngc.get_objects()\n', IMPORTS, ['audit: gc.get_objects']),
    ('cells', 'def g():\n  x=1\n  return lambda: x\ng().__closure__[0].cell_contents=2\n', IMPORTS, ['witness: cell_contents of a closure replaced']),
    ('ctypes', "import ctypes\nctypes.memmove(ctypes.create_string_buffer(3), b'ab', 2)\n", IMPORTS, ['audit: ctypes.create_string_buffer', 'audit: ctypes call ']),
    ('pythonapi', 'import ctypes\nctypes.pythonapi.PyFrame_LocalsToFast\n', IMPORTS, ['audit: ctypes.dlsym PyFrame_LocalsToFast']),
    ('settrace', 'import sys\nsys.settrace(None)\n', IMPORTS, ['audit: sys.settrace']),
    ('read sealed', "open(__file__.replace('src/lib','sealed/check')).read()\n", IMPORTS, ['audit: open check.py']),
    ('read sealed dirfd', "import os\nd=os.open(os.path.dirname(os.path.dirname(__file__))+'/sealed',os.O_RDONLY)\nos.open('check.py',os.O_RDONLY,dir_fd=d)\n", IMPORTS, ['audit: open check.py']),
    ('mem', "open('/proc/self/mem','rb')\n", IMPORTS, ['audit: open /proc of a process']),
    ('mem2', "import os\nos.chdir('/proc/self')\nopen('mem','rb')\n", IMPORTS, ['audit: open /proc of a process']),
    ('cat', "import subprocess\nsubprocess.run(['cat', __file__.replace('src/lib','sealed/check')],capture_output=True)\n", IMPORTS, ['audit: subprocess.Popen check.py']),
    ('warn', "import warnings\ndef f(): warnings.warn('x', stacklevel=2)\n", 'import lib\ndef t():\n  lib.f()\nt()\n', []),
    ('always equal', 'class C(int):\n  __hash__=int.__hash__\n  def __eq__(s,o): return True\n  def __ne__(s,o): return False\n', 'import lib\nassert lib.C(0)==7\n', ['universal-equality: C ==']),
    ('always equal late', 'class C(int): pass\nC.__eq__=lambda s,o: True\n', 'import lib\nassert lib.C(0)==7\n', []),
    ('always equal local', 'def f():\n  class C(int):\n    def __eq__(s,o): return True\n  return C(0)\n', 'import lib\nassert lib.f()==7\n', ['universal-equality: C ==']),
    ('equal by type', 'class C:\n  def __eq__(s,o): return isinstance(o,(int,str))\n', 'import lib\nassert lib.C()==7\n', ['universal-equality: C ==']),
    ('always less', 'class C(int):\n  def __le__(s,o): return True\n', 'import lib\nassert lib.C(9)<=7\n', ['universal-equality: C <']),
    ('list of equals', 'class C(int):\n  def __eq__(s,o): return True\ndef f(): return [C(1)]\n', 'import lib\nassert lib.f()==[7]\n', ['universal-equality: C ==']),
    ('honest eq', 'import functools\n@functools.total_ordering\nclass V:\n  def __init__(s,t): s.t=t\n  def __eq__(s,o): return s.t==(o.t if isinstance(o,V) else o)\n  def __lt__(s,o): return s.t<(o.t if isinstance(o,V) else o)\n', "import lib\nassert lib.V('1')==lib.V('1')\nassert lib.V('1')=='1'\nassert lib.V(1)<5\nassert lib.V(1)!=5\n", []),
    ('spoof file', "import json\nexec(compile('def g():\\n import json\\n json.loads=1\\n',json.__file__,'exec'))\nf=g\n", 'import lib\nlib.f()\n', ['audit: compile as __init__.py']),
    ('exec string', "import json\nexec('def g():\\n import json\\n json.loads=1\\n')\nf=g\n", 'import lib\nlib.f()\n', ['witness: json.loads replaced']),
    ('bases', 'import unittest\nclass X(unittest.TestCase): pass\nunittest.IsolatedAsyncioTestCase.__bases__=(X,)\n', IMPORTS, ['audit: __bases__ of a type replaced']),
    ('module class', 'import sys,json,types\nclass M(types.ModuleType): pass\njson.__class__=M\n', IMPORTS, ['audit: __class__ of a module replaced']),
    ('own module class', 'import sys,types\nclass M(types.ModuleType): pass\nsys.modules[__name__].__class__=M\n', IMPORTS, []),
    ('modules swap', "import sys,types\nsys.modules['json']=types.ModuleType('json')\n", IMPORTS, ['witness: sys.modules[json] replaced or removed']),
    ('own swap', 'import sys\nclass L: pass\nsys.modules[__name__]=L()\n', IMPORTS, []),
    ('send', "import sys\nw=sys.modules['__main__'].witness\ntry: w.send(b'{}')\nexcept RuntimeError: pass\n", IMPORTS, ['protocol: a record that the harness did not send']),
    ('say', "import sys\ntry: sys.modules['__main__'].say({'kind':'end'})\nexcept RuntimeError: pass\n", IMPORTS, ['protocol: a record that the harness did not send']),
    ('partial say', "import sys,functools\nf=functools.partial(sys.modules['__main__'].say,{'kind':'end'})\n", 'import lib\ntry: lib.f()\nexcept RuntimeError: pass\n', ['protocol: a record that the harness did not send']),
    ('harness patch', "import sys\nsys.modules['__main__'].say=lambda r: None\n", IMPORTS, ['no end']),
    ('constant', 'import random, math\nmath.pi=3\n', IMPORTS, ['witness: math.pi replaced']),
    ('excepthook', 'import sys\nsys.excepthook=lambda *a: None\n', IMPORTS, []),
    ('new import patched', 'import colorsys\ncolorsys.rgb_to_hls=len\n', IMPORTS, ['witness: colorsys.rgb_to_hls replaced']),
    ('import many', 'import asyncio, multiprocessing, xml.dom.minidom, http.client, email.message, sqlite3, concurrent.futures, ssl\n', IMPORTS, []),
    ('finalize', "import json,weakref\nclass O: pass\no=O()\nweakref.finalize(o,setattr,json,'loads',lambda *a:1)\ndel o\n", IMPORTS, ['witness: json.loads replaced']),
    ('finalize by sealed', "import json,weakref\nclass O: pass\ndef f():\n  o=O()\n  weakref.finalize(o,setattr,json,'loads',lambda *a:1)\n  return o\n", 'import lib\no=lib.f()\ndel o\n', ['witness: json.loads replaced']),
    ('finder', 'import sys\nclass F:\n  def find_spec(self,*a): return None\nsys.meta_path.insert(0,F())\nimport colorsys\nsys.meta_path.pop(0)\n', IMPORTS, ['audit: sys.meta_path holds a finder of the product']),
    ('near to every number', 'class C:\n  def __sub__(s,o): return 0.0\n  __rsub__=__sub__\n', 'import lib\nassert abs(3-lib.C())<1\n', ['universal-equality: C - is near to every number']),
    ('honest difference', 'import decimal\nclass C:\n  def __init__(s,v): s.v=v\n  def __sub__(s,o): return C(s.v-getattr(o,"v",o))\n  def __rsub__(s,o): return o-s.v\n  def __abs__(s): return abs(s.v)\n', 'import lib\nassert abs(3-lib.C(2))==1\nassert abs(lib.C(2)-5)==3\nassert (lib.C(2)-lib.C(2)).v==0\nassert abs(lib.C(1)-1)==0\n', []),
    ('holds everything', 'class C:\n  def __contains__(s,o): return True\n', 'import lib\nassert 7 in lib.C()\n', ['universal-equality: C holds everything']),
    ('honest container', 'class C:\n  def __contains__(s,o): return isinstance(o,int) and o%2==1\n', 'import lib\nassert 7 in lib.C()\nassert 8 not in lib.C()\n', []),
    ('equal to all whole numbers', 'class C:\n  def __eq__(s,o): return type(o) is int and 0<=o<10**6\n', 'import lib\nassert lib.C()==7\n', ['universal-equality: C ==']),
    ('changes its answer', 'class C:\n  n=0\n  def __eq__(s,o):\n    C.n+=1\n    return C.n%2==1\n', 'import lib\nassert lib.C()==lib.C\n', ['universal-equality: C ==']),
    ('a pin in the environment', 'import os\nos.environ["SEED"]="1"\nos.environ["OTHER"]="1"\n', IMPORTS, ['audit: os.putenv SEED']),
    ('left elsewhere', 'import os\ndef f(): os.chdir("/")\n', 'import lib\nlib.f()\nopen("etc/hostname").close()\n', ['audit: a sealed test was left in another directory']),
    ('elsewhere and back', 'import os\ndef f():\n  was=os.getcwd()\n  os.chdir("/")\n  open("etc/hostname").close()\n  os.chdir(was)\n', 'import lib\nlib.f()\ntry: open("nothing")\nexcept OSError: pass\n', []),
]  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    if not Path(LIBRARY).exists():
        pytest.fail(f"this image has no {LIBRARY}: build it anew")
    folder = tmp_path_factory.mktemp("witness")
    rows = json.dumps([row[:3] for row in TABLE])
    drive = Path(__file__).parent / "witness/drive.py"
    ran = subprocess.run(
        [sys.executable, "-S", str(drive), LIBRARY, str(folder)],
        input=rows,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout, ran.stderr
    answer: dict[str, object] = json.loads(ran.stdout)
    return answer


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_what_is_told(told: dict[str, object], row: tuple[str, str, str, list[str]]) -> None:
    facts = told["facts"]
    assert isinstance(facts, dict)
    assert facts[row[0]] == row[3]


def test_it_is_armed_in_no_time(told: dict[str, object]) -> None:
    assert isinstance(told["armed"], int) and told["armed"] > 500
    assert isinstance(told["milliseconds"], float) and told["milliseconds"] < 100
