import type { DeclaredTool } from '../../protocol/execution/execute.ts'

const text = (description: string) => ({ type: 'string', description })

/**
 * The tools of this machine beside the contract's four, which every router knows; sent as `attachments.tools`. They
 * only read inside the workspace, so they are allowed unless the policy is stricter.
 */
export const DECLARED_TOOLS: readonly DeclaredTool[] = [
  {
    name: 'list_files',
    description:
      'Lists the files of the workspace, or of a folder in it, without those that git ignores. Deeper folders are summed up.',
    parameters: {
      type: 'object',
      properties: {
        path: text('Folder relative to the workspace root; the root when left out.'),
        depth: text('How many levels of folders to open, as a number; 3 when left out.'),
        offset: text('Entry to begin with, as a number, to read on in a long list.'),
      },
      required: [],
      additionalProperties: false,
    },
    permission: 'allow',
    changes_files: false,
    reaches_network: false,
  },
  {
    name: 'read_lines',
    description: 'Reads some lines of a text file: for files that are too long for read_file.',
    parameters: {
      type: 'object',
      properties: {
        path: text('Path relative to the workspace root.'),
        offset: text('Line to begin with, as a number from 1.'),
        limit: text('How many lines, as a number; all that fit when left out.'),
      },
      required: ['path', 'offset'],
      additionalProperties: false,
    },
    permission: 'allow',
    changes_files: false,
    reaches_network: false,
  },
  {
    name: 'search_files',
    description:
      'Finds the lines of text files that hold a text, without regard to upper and lower case, as file:line: text.',
    parameters: {
      type: 'object',
      properties: {
        query: text('The text to look for; it is not a pattern.'),
        path: text('Folder or file relative to the workspace root; the root when left out.'),
        offset: text('Match to begin with, as a number, to read on in a long result.'),
      },
      required: ['query'],
      additionalProperties: false,
    },
    permission: 'allow',
    changes_files: false,
    reaches_network: false,
  },
  {
    name: 'show_changes',
    description:
      'Shows what is changed in the workspace against the last git commit, staged or not: the files with their added and removed lines, the names of untracked files, then the diff.',
    parameters: {
      type: 'object',
      properties: {
        path: text('Folder or file relative to the workspace root; the root when left out.'),
        offset: text('Line to begin with, as a number, to read on in a long answer.'),
      },
      required: [],
      additionalProperties: false,
    },
    permission: 'allow',
    changes_files: false,
    reaches_network: false,
  },
]
